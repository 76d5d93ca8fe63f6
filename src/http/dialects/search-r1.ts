import { errorBody } from '../error-reply.ts';
import { Issues } from '../request-error.ts';
import type { Dialect, RequestLimits } from './dialect.ts';
import {
  field,
  type JsonObject,
  readReturnScores,
  readTopk,
  refuseTooLargeK,
  refuseTooManyQueries,
  requireJsonObject,
  withQuestions,
} from './request-fields.ts';
import { resultLists } from './result-lists.ts';

/**
 * Search-R1 and the many that copied its server: a batch of queries in, one list of passages per query out. Two of the
 * original's faults are not copied: `return_scores: false` fails there or drops queries, and a `topk` beyond the corpus
 * repeats the last passage.
 *
 * `questions` is our own addition: the question that each query serves, for retrievers trained on both.
 */
export const searchR1: Dialect = {
  name: 'search-r1',
  path: '/retrieve',
  claims: () => true,
  parse(body, limits) {
    const request = requireJsonObject(body);
    const issues = new Issues();
    const queries = readQueries(request, issues, limits);
    const k = readTopk(request, issues, limits);
    const withScores = readReturnScores(request, issues);
    const inputs = withQuestions(queries, request, issues);
    issues.throwIfAny();
    refuseTooLargeK(k, queries.length, limits);
    return { call: { queries: inputs, k }, reply: (outcomes) => resultLists(outcomes, withScores) };
  },
  errorBody,
};

function readQueries(request: JsonObject, issues: Issues, limits: RequestLimits): readonly string[] {
  const found = field(request, 'queries');
  if (found === undefined) issues.add('missing', ['queries'], 'Field required', undefined);
  else if (!Array.isArray(found)) issues.add('list_type', ['queries'], 'Input should be a valid list', found);
  if (!Array.isArray(found)) return [];
  refuseTooManyQueries(found.length, limits);
  for (const [i, query] of found.entries()) {
    if (typeof query !== 'string') issues.add('string_type', ['queries', i], 'Input should be a valid string', query);
  }
  return found as readonly string[];
}
