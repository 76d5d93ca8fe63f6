import { ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonBody, JsonNode, ObjectNode } from '../json-nodes.ts';
import { numberOf, textOf } from '../json-values.ts';
import type { DslQuery, DslValue } from './dsl-query.ts';

/** The body of one query, such as the object after `"match":`. */
export interface Clause {
  readonly body: JsonBody;
  /** The query's name, for messages. */
  readonly name: string;
  readonly node: ObjectNode;
  /** Parses a query within this one. */
  readonly parse: (node: JsonNode) => DslQuery;
}

/** Reads one parameter of a query. */
type Parameter = (node: JsonNode) => void;

/**
 * Calls the reader of each parameter of a query. `boost` is read here, and null stands for an absent parameter.
 *
 * @returns the boost.
 * @throws ElasticsearchError for a parameter without a reader.
 */
export function readParameters(
  { body, name }: Pick<Clause, 'body' | 'name'>,
  node: ObjectNode,
  readers: Readonly<Record<string, Parameter>>,
): number {
  let boost = 1;
  const all: Readonly<Record<string, Parameter>> = {
    ...readers,
    boost(value) {
      boost = boostOf(body, value);
    },
  };
  for (const [parameter, value] of node.members) {
    const read = Object.hasOwn(all, parameter) ? all[parameter] : undefined;
    if (read === undefined) throw unknownParameter({ body, name }, node, parameter);
    if (value.type !== 'null') read(value);
  }
  return boost;
}

function unknownParameter(
  { body, name }: Pick<Clause, 'body' | 'name'>,
  { names, members }: ObjectNode,
  parameter: string,
): ElasticsearchError {
  const shown = parameter.slice(0, 100);
  if (name !== 'bool') return body.fault(members.get(parameter)!, `[${name}] query does not support [${shown}]`);
  // Elasticsearch parses a bool in another way than the other queries.
  const { line, col } = body.locate(names.get(parameter)!);
  const reason = `[${line}:${col}] [bool] unknown field [${shown}]`;
  return new ElasticsearchError(400, { type: 'x_content_parse_exception', reason });
}

/** Refuses a parameter that Elasticsearch has and this server does not, unless its value changes nothing. */
export function onlyNeutral(
  { body, name }: Pick<Clause, 'body' | 'name'>,
  parameter: string,
  isNeutral: (node: JsonNode) => boolean,
): Parameter {
  return (node) => {
    if (isNeutral(node)) return;
    throw body.fault(node, `[${name}] query does not support [${parameter}] with this value on this server`);
  };
}

/** The only member of an object whose name is a field: `{"text": …}`. */
export function onlyField({ body, name, node }: Clause): { field: string; value: JsonNode } {
  const [first, second] = node.members;
  if (first === undefined) throw body.fault(node, `[${name}] query malformed, no field found`);
  if (second !== undefined) {
    throw body.fault(
      second[1],
      `[${name}] query doesn't support multiple fields, found [${first[0].slice(0, 100)}] and [${second[0].slice(0, 100)}]`,
    );
  }
  return { field: first[0], value: first[1] };
}

/** A string, a number or a boolean as it was written. */
export function dslValueOf(body: JsonBody, node: JsonNode, what: string): DslValue {
  return { text: textOf(body, node, what), isNumber: node.type === 'number' };
}

function boostOf(body: JsonBody, node: JsonNode): number {
  const boost = numberOf(body, node, '[boost]');
  if (boost < 0) throw negativeBoost(boost);
  if (!Number.isFinite(Math.fround(boost)))
    throw illegalArgument(`[boost] is ${boost}, which is out of the range of a float`);
  return boost;
}

export function negativeBoost(boost: number): ElasticsearchError {
  return illegalArgument(
    `negative [boost] are not allowed, but it is [${boost}]; use a value between 0 and 1 to deboost`,
  );
}
