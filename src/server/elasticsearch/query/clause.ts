import { contentException, type ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode } from '../json-node.ts';
import type { DslQuery, DslValue } from './dsl-query.ts';

/** The body of one query, such as the object after `"match":`. */
export interface Clause {
  /** The query's name, for messages. */
  readonly name: string;
  readonly node: JsonNode;
  /** Parses a query within this one. */
  readonly parse: (node: JsonNode) => DslQuery;
}

/** Reads a value of a body. `what` names it in messages, such as `[boost]`. */
export type Read<T> = (node: JsonNode, what: string) => T;
type Readers = Readonly<Record<string, Read<unknown> | undefined>>;

/** The values that readers read, in the order of the body. Members that are absent or null are undefined. */
export type Values<R extends Readers> = { readonly [Name in keyof R]?: ReturnType<NonNullable<R[Name]>> };

export const readText: Read<string> = (node, what) => node.text(what);
export const readNumber: Read<number> = (node, what) => node.number(what);
export const readInteger: Read<number> = (node, what) => node.integer(what);
export const readBoolean: Read<boolean> = (node, what) => node.boolean(what);
export const readValue: Read<DslValue> = (node, what) => ({
  text: node.text(what),
  isNumber: typeof node.value === 'number',
});
/** Reads nothing, for a member that has no effect on this server. */
export const ignore: Read<void> = () => undefined;

/**
 * Reads the members of an object, each with its reader.
 *
 * @param unknown the error of a member without a reader.
 */
export function readMembers<R extends Readers>(
  node: JsonNode,
  readers: R,
  unknown: (name: string, value: JsonNode) => Error,
): Values<R> {
  // Without a prototype, so that no name has a meaning of its own.
  const values = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of node.members ?? []) {
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined;
    if (read === undefined) throw unknown(name, value);
    if (value.value !== null) values[name] = read(value, `[${name}]`);
  }
  return values as Values<R>;
}

/**
 * Reads the parameters of a query, and its boost.
 *
 * @param query the query's name.
 */
export function readParameters<R extends Readers>(
  query: string,
  node: JsonNode,
  readers: R,
): Values<R> & { readonly boost: number } {
  const all: Readers = { boost: readBoost, ...readers };
  const values = readMembers(node, all, (name, value) => unknownParameter(query, name, value));
  return { boost: 1, ...values } as unknown as Values<R> & { readonly boost: number };
}

function unknownParameter(query: string, parameter: string, value: JsonNode): ElasticsearchError {
  const shown = parameter.slice(0, 100);
  // Elasticsearch has another parser for bool.
  if (query === 'bool') return contentException(value.nameLocation, `[bool] unknown field [${shown}]`);
  return value.fault(`[${query}] query does not support [${shown}]`);
}

/** For a parameter that Elasticsearch has and this server does not: refuses values that would change something. */
export function onlyNeutral(query: string, isNeutral: (node: JsonNode, what: string) => boolean): Read<void> {
  return (node, what) => {
    if (!isNeutral(node, what))
      throw node.fault(`[${query}] query does not support ${what} with this value on this server`);
  };
}

/** The only member of an object whose name is a field: `{"text": …}`. */
export function onlyField({ name, node }: Clause): { field: string; value: JsonNode } {
  const [first, second] = node.members ?? [];
  if (first === undefined) throw node.fault(`[${name}] query malformed, no field found`);
  if (second !== undefined) {
    throw second[1].fault(
      `[${name}] query doesn't support multiple fields, found [${first[0].slice(0, 100)}] and [${second[0].slice(0, 100)}]`,
    );
  }
  return { field: first[0], value: first[1] };
}

function readBoost(node: JsonNode, what: string): number {
  const boost = node.number(what);
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
