import { type ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonBody, JsonNode } from '../json-nodes.ts';
import { tokenOf } from '../json-values.ts';
import type { Clause } from './clause.ts';
import { parseAllOrNone, parseBool, parseConstantScore, parseDisMax } from './compound-clauses.ts';
import type { DslQuery } from './dsl-query.ts';
import { parseKnnClause } from './knn-clause.ts';
import { parseRange } from './range-clause.ts';
import { parseExists, parseIds, parseTerm, parseTerms } from './term-clauses.ts';
import { parseMatch, parseMultiMatch } from './text-clauses.ts';

const PARSERS: ReadonlyMap<string, (clause: Clause) => DslQuery> = new Map([
  ['match', parseMatch],
  ['multi_match', parseMultiMatch],
  ['term', parseTerm],
  ['terms', parseTerms],
  ['range', parseRange],
  ['knn', parseKnnClause],
  ['ids', parseIds],
  ['exists', parseExists],
  ['bool', parseBool],
  ['dis_max', parseDisMax],
  ['constant_score', parseConstantScore],
  ['match_all', parseAllOrNone('match-all')],
  ['match_none', parseAllOrNone('match-none')],
]);

/** Queries that need the places of words in a passage, which the index does not have. */
const NEED_POSITIONS = ['match_phrase', 'match_phrase_prefix', 'intervals', 'span_near', 'span_term', 'span_or'];

/** Queries within queries. Elasticsearch allows 30; some of them are two levels in the engine, which allows 32. */
const MAX_DEPTH = 28;

/** Parses a query such as `{"match": {"text": "words"}}`. @throws ElasticsearchError */
export function parseQuery(body: JsonBody, root: JsonNode): DslQuery {
  const parse = (node: JsonNode, depth: number): DslQuery => {
    if (depth > MAX_DEPTH)
      throw illegalArgument(`The nested depth of the query exceeds the maximum of this server, ${MAX_DEPTH}`);
    if (node.type !== 'object') throw body.fault(node, '[_na] query malformed, must start with start_object');
    const [first, second] = node.members;
    if (first === undefined) {
      const { line, col } = body.locate(node.at);
      throw illegalArgument(`query malformed, empty clause found at [${line}:${col}]`);
    }
    const [name, value] = first;
    const parser = PARSERS.get(name);
    if (value.type !== 'object')
      throw body.fault(value, `[${name.slice(0, 100)}] query malformed, no start_object after query name`);
    if (parser === undefined) throw unknownQuery(body, value, name);
    const query = parser({ body, name, node: value, parse: (inner) => parse(inner, depth + 1) });
    if (second !== undefined) {
      throw body.fault(
        second[1],
        `[${name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME] (${tokenOf(second[1])})`,
      );
    }
    return query;
  };
  return parse(root, 1);
}

function unknownQuery(body: JsonBody, node: JsonNode, name: string): ElasticsearchError {
  const { line, col } = body.locate(node.at);
  const shown = name.slice(0, 100);
  const why = NEED_POSITIONS.includes(name)
    ? ': this server has no positions of words, so it cannot search phrases'
    : '';
  return body.fault(node, `unknown query [${shown}]${why}`, {
    caused_by: { type: 'named_object_not_found_exception', reason: `[${line}:${col}] unknown field [${shown}]` },
  });
}
