import { errorBody } from '../error-reply.ts';
import { Issues } from '../request-error.ts';
import type { Dialect } from './dialect.ts';
import {
  field,
  isJsonObject,
  readReturnScores,
  readTopk,
  refuseTooLargeK,
  requireJsonObject,
} from './request-fields.ts';
import { resultLists } from './result-lists.ts';

/**
 * SkyRL (skyrl-gym): one query in, an outer list of length 1 out, on Search-R1's path. A string `query` makes a body
 * SkyRL's even beside `queries`, which SkyRL's server ignores and rLLM's older one ranks second.
 */
export const skyrl: Dialect = {
  name: 'skyrl',
  path: '/retrieve',
  claims(body) {
    if (!isJsonObject(body)) return false;
    const query = field(body, 'query');
    return typeof query === 'string' || (query !== undefined && field(body, 'queries') === undefined);
  },
  parse(body, limits) {
    const request = requireJsonObject(body);
    const issues = new Issues();
    const query = field(request, 'query');
    if (typeof query !== 'string') issues.add('string_type', ['query'], 'Input should be a valid string', query);
    const k = readTopk(request, issues, limits);
    const withScores = readReturnScores(request, issues);
    issues.throwIfAny();
    refuseTooLargeK(k, 1, limits);
    return { call: { queries: [query as string], k }, reply: (outcomes) => resultLists(outcomes, withScores) };
  },
  errorBody,
};
