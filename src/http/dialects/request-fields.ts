import type { EncoderInput } from '../../embedding/text-encoder.ts';
import { type Issues, RequestError } from '../request-error.ts';
import type { RequestLimits } from './dialect.ts';
import { laxBoolean, laxInteger } from './lax-values.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** A member of the body itself: undefined for what is only inherited, such as `constructor`. */
export function field(body: JsonObject, name: string): unknown {
  return Object.hasOwn(body, name) ? body[name] : undefined;
}

export function isJsonObject(body: unknown): body is JsonObject {
  return typeof body === 'object' && body !== null && !Array.isArray(body);
}

export function requireJsonObject(body: unknown): JsonObject {
  if (isJsonObject(body)) return body;
  throw new RequestError('INVALID_REQUEST', 'The body must be a JSON object.', [
    {
      type: 'model_attributes_type',
      loc: ['body'],
      msg: 'Input should be a valid dictionary or object to extract fields from',
    },
  ]);
}

/** Hits per query. Absent, null and 0 (false, in Python) mean the server's own number, as in Search-R1. */
export function readTopk(body: JsonObject, issues: Issues, limits: RequestLimits): number {
  const found = field(body, 'topk');
  if (found === undefined || found === null) return limits.topk;
  const read = laxInteger(found);
  if (!read.ok) {
    issues.add(read.type, ['topk'], read.msg, found);
    return limits.topk;
  }
  if (read.value < 0) {
    issues.add('greater_than_equal', ['topk'], 'Input should be greater than or equal to 0', found);
    return limits.topk;
  }
  return read.value === 0 ? limits.topk : read.value;
}

export function readReturnScores(body: JsonObject, issues: Issues): boolean {
  const found = field(body, 'return_scores');
  if (found === undefined) return false;
  const read = laxBoolean(found);
  if (!read.ok) issues.add(read.type, ['return_scores'], read.msg, found);
  return read.ok && read.value;
}

/** A question that is null or empty leaves its query to stand alone. */
export function withQuestions(
  queries: readonly string[],
  request: JsonObject,
  issues: Issues,
): readonly EncoderInput[] {
  const questions = field(request, 'questions');
  if (questions === undefined || questions === null) return queries;
  if (!Array.isArray(questions)) {
    issues.add('list_type', ['questions'], 'Input should be a valid list', questions);
    return queries;
  }
  if (questions.length !== queries.length) {
    const found = `there are ${questions.length} questions and ${queries.length} queries`;
    issues.add('value_error', ['questions'], `Each query needs its question, or null: ${found}`, undefined);
    return queries;
  }
  return queries.map((query, i) => {
    const question: unknown = questions[i];
    if (question === null || question === '') return query;
    if (typeof question === 'string') return { question, query };
    issues.add('string_type', ['questions', i], 'Input should be a valid string', question);
    return query;
  });
}

export function refuseTooManyQueries(count: number, limits: RequestLimits): void {
  if (count <= limits.maxQueries) return;
  const reason = `The request has ${count} queries; this server takes at most ${limits.maxQueries} at a time.`;
  throw new RequestError('TOO_MANY_QUERIES', `${reason} Send them in several requests.`, [
    { type: 'too_long', loc: ['body', 'queries'], msg: reason },
  ]);
}

/** Checked after the values are known to be good, so that a wrong value is told as that. */
export function refuseTooLargeK(k: number, queries: number, limits: RequestLimits): void {
  if (k > limits.maxK) {
    throw tooLarge(`topk is ${k}; this server gives at most ${limits.maxK} passages per query.`, 'Ask for fewer.');
  }
  if (k * queries > limits.maxHits) {
    const reason = `${queries} queries with ${k} passages each are more than the ${limits.maxHits} passages of one reply.`;
    throw tooLarge(reason, 'Send fewer queries at a time.');
  }
}

function tooLarge(reason: string, wayOut: string): RequestError {
  return new RequestError('K_TOO_LARGE', `${reason} ${wayOut}`, [
    { type: 'less_than_equal', loc: ['body', 'topk'], msg: reason },
  ]);
}
