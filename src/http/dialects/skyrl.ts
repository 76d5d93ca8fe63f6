import type { EncoderInput } from '../../embedding/text-encoder.ts';
import { errorBody } from '../error-reply.ts';
import { Issues } from '../request-error.ts';
import type { Dialect } from './dialect.ts';
import {
  field,
  isJsonObject,
  type JsonObject,
  readReturnScores,
  readTopk,
  refuseTooLargeK,
  requireJsonObject,
  withQuestions,
} from './request-fields.ts';
import { resultLists } from './result-lists.ts';

/**
 * SkyRL (skyrl-gym): one query in, an outer list of length 1 out, on Search-R1's path. A string `query` makes a body
 * SkyRL's even beside `queries`, which SkyRL's server ignores and rLLM's older one ranks second.
 *
 * `question` (or `questions` with one entry) is our own addition, as `questions` is for batches.
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
    const inputs = withQuestion(String(query), request, issues);
    issues.throwIfAny();
    refuseTooLargeK(k, 1, limits);
    return { call: { queries: inputs, k }, reply: (outcomes) => resultLists(outcomes, withScores) };
  },
  errorBody,
};

function withQuestion(query: string, request: JsonObject, issues: Issues): readonly EncoderInput[] {
  const question = field(request, 'question');
  const alone = withQuestions([query], request, issues);
  if (question === undefined || question === null) return alone;
  if (typeof question !== 'string') {
    issues.add('string_type', ['question'], 'Input should be a valid string', question);
    return alone;
  }
  const questions = field(request, 'questions');
  if (questions !== undefined && questions !== null) {
    issues.add('value_error', ['question'], 'A query takes question or questions, not both', undefined);
    return alone;
  }
  return question === '' ? [query] : [{ question, query }];
}
