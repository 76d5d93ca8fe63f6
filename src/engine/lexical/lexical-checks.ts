import { type Bm25Parameters, DEFAULT_BM25 } from './bm25.ts';
import type { ExplainRequest, LexicalFields, LexicalFieldsRequest, LexicalRequest } from './lexical-index.ts';
import {
  childrenOf,
  type LexicalQuery,
  MAX_QUERY_DEPTH,
  MAX_QUERY_NODES,
  type MatchQuery,
  type RowsQuery,
} from './lexical-query.ts';

/** @throws RangeError if k, k1 or b is out of range, or the filter does not cover `rows` rows. */
export function checkLexicalRequest(
  { k, parameters = DEFAULT_BM25, filter }: Omit<LexicalRequest, 'queries'>,
  rows: number,
): void {
  if (!Number.isSafeInteger(k) || k < 1) throw new RangeError(`k must be a positive integer, but is ${k}.`);
  checkParameters(parameters);
  if (filter !== undefined && filter.rows !== rows)
    throw new RangeError(`The filter covers ${filter.rows} rows, but the index has ${rows}.`);
}

/** The fields and rows that queries may name. */
type QueriedIndex = Pick<LexicalFields, 'indexes' | 'rows'>;

/** @throws TypeError or RangeError if a part of the request is wrong for this index. */
export function checkFieldsRequest(request: LexicalFieldsRequest, index: QueriedIndex): void {
  const { count, minScore, queries } = request;
  checkLexicalRequest(request, index.rows);
  if (count !== undefined && !(Number.isSafeInteger(count) && count >= 0))
    throw new RangeError(`count must be an integer of at least 0, but is ${count}.`);
  if (Number.isNaN(minScore)) throw new RangeError('minScore must be a number, but is NaN.');
  checkQueries(queries, index);
}

/** A request with its defaults. @throws RangeError if k1, b or a row is out of range. */
export function checkedExplainRequest(request: ExplainRequest, rows: number): Required<Omit<ExplainRequest, 'signal'>> {
  const { query, rows: explained, parameters = DEFAULT_BM25, weight = 1, maxTerms = Number.MAX_SAFE_INTEGER } = request;
  checkParameters(parameters);
  const wrong = explained.find((row) => !Number.isInteger(row) || row < 0 || row >= rows);
  if (wrong !== undefined) throw new RangeError(`A row is ${wrong}, but the index has rows 0 to ${rows - 1}.`);
  return { query, rows: explained, parameters, weight, maxTerms };
}

function checkParameters({ k1, b }: Bm25Parameters): void {
  if (!Number.isFinite(Math.fround(k1)) || k1 < 0) throw new RangeError(`k1 must be 0 or larger, but is ${k1}.`);
  if (!(b >= 0 && b <= 1)) throw new RangeError(`b must be from 0 to 1, but is ${b}.`);
}

/**
 * Programs that use the package build trees by hand, so that the types promise nothing.
 *
 * @throws TypeError or RangeError if a query is not a tree over the fields, or breaks a limit.
 */
export function checkQueries(queries: readonly LexicalQuery[], { indexes, rows }: QueriedIndex): void {
  const fields = new Set<string>(indexes.keys());
  for (const query of queries) {
    let nodes = 0;
    const check = (node: LexicalQuery, depth: number): void => {
      if (depth > MAX_QUERY_DEPTH)
        throw new RangeError(`A query must be nested at most ${MAX_QUERY_DEPTH} levels deep.`);
      if (++nodes > MAX_QUERY_NODES) throw new RangeError(`A query must have at most ${MAX_QUERY_NODES} nodes.`);
      checkNode(node, fields, rows);
      for (const child of childrenOf(node)) check(child, depth + 1);
    };
    check(query, 1);
  }
}

function checkNode(query: LexicalQuery, fields: ReadonlySet<string>, rows: number): void {
  checkNumber('boost', query.boost, MAX_FLOAT32);
  switch (query.type) {
    case 'term':
      checkField(query.field, fields);
      checkString('term', query.term);
      break;
    case 'match':
      checkField(query.field, fields);
      checkString('text', query.text);
      checkChoice('operator', query.operator, ['or', 'and']);
      checkMinimum(query.minimumShouldMatch);
      checkChoice('withoutTerms', query.withoutTerms, ['none', 'all']);
      break;
    case 'bool':
      for (const name of ['must', 'should', 'filter', 'mustNot'] as const) {
        if (query[name] !== undefined) checkArray(name, query[name]);
      }
      checkInteger('minimumShouldMatch', query.minimumShouldMatch, 0);
      break;
    case 'dis-max':
      checkArray('queries', query.queries);
      checkNumber('tieBreaker', query.tieBreaker, 1);
      break;
    case 'rows':
      if (query.rows.rows !== rows)
        throw new RangeError(`A set of rows covers ${query.rows.rows} rows, but the index has ${rows}.`);
      checkScores(query);
      break;
    case 'constant-score':
    case 'match-all':
    case 'match-none':
      break;
    default:
      throw new TypeError(`A query must have a known type, not ${JSON.stringify((query as { type: unknown }).type)}.`);
  }
}

function checkScores({ rows, scores }: RowsQuery): void {
  if (scores === undefined) return;
  const count = rows.count();
  if (scores.length !== count) throw new RangeError(`A set of ${count} rows has ${scores.length} scores.`);
  const wrong = scores.find((score) => !(score >= 0 && Number.isFinite(score)));
  if (wrong !== undefined) throw new RangeError(`The score of a row must be a number of at least 0, but is ${wrong}.`);
}

function checkMinimum(minimum: MatchQuery['minimumShouldMatch']): void {
  if (minimum === undefined || typeof minimum === 'number') {
    checkInteger('minimumShouldMatch', minimum, -MAX_CLAUSES);
    return;
  }
  checkArray('minimumShouldMatch', minimum);
  for (const { above, count } of minimum) {
    checkInteger('above', above, -MAX_CLAUSES);
    checkInteger('count', count, -MAX_CLAUSES);
  }
}

const MAX_FLOAT32 = (2 - 2 ** -23) * 2 ** 127;
const MAX_CLAUSES = 2 ** 31;

function checkField(field: string, fields: ReadonlySet<string>): void {
  if (!fields.has(field))
    throw new RangeError(
      `A query names the field ${JSON.stringify(field)}, but the index has ${[...fields].join(', ')}.`,
    );
}

function checkChoice(name: string, value: string | undefined, [one, other]: readonly [string, string]): void {
  if (value !== undefined && value !== one && value !== other)
    throw new TypeError(`${name} must be '${one}' or '${other}', not ${JSON.stringify(value)}.`);
}

function checkString(name: string, value: unknown): void {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, not ${typeof value}.`);
}

function checkArray(name: string, value: unknown): void {
  if (!Array.isArray(value)) throw new TypeError(`${name} must be an array, not ${typeof value}.`);
}

function checkNumber(name: string, value: number | undefined, most: number): void {
  if (value === undefined) return;
  // Rounding to float32 comes first, as in the engine: the largest float64 becomes infinite.
  if (!(value >= 0 && Math.fround(value) <= most))
    throw new RangeError(`${name} must be a number from 0 to ${most}, but is ${value}.`);
}

function checkInteger(name: string, value: number | undefined, least: number): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || value < least || value > MAX_CLAUSES)
    throw new RangeError(`${name} must be an integer from ${least} to ${MAX_CLAUSES}, but is ${value}.`);
}
