import { TrawlError } from '../../errors.ts';
import type { Hit, QueryOutcome, RetrieveCall, RetrieveResult } from '../../retrieval/retriever.ts';
import { NO_TIMINGS } from '../../retrieval/timings.ts';
import { RequestError } from '../request-error.ts';
import type { Plan, RequestLimits } from './dialect.ts';

export interface SearchPart {
  readonly queries: RetrieveCall['queries'];
  /** Hits per query; 0 asks for none and gets none. */
  readonly k: number;
  /** The field that k came from, for messages. */
  readonly kField: string;
  readonly limits: RequestLimits;
}

/** The plan of most dialects: one search, and its outcomes in the dialect's words. */
export function searchPlan(
  { queries, k, kField, limits }: SearchPart,
  reply: (result: RetrieveResult) => Iterable<string>,
): Plan {
  refuseTooLargeK(k, kField, queries.length, limits);
  return {
    queries: queries.length,
    k,
    async run(retriever, signal) {
      const result = k === 0 ? nothingFor(queries.length) : await retriever.retrieve({ queries, k, signal });
      const truncated = result.outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
      return { timings: result.timings, truncated, pieces: reply(result) };
    },
  };
}

/** Checked after the values are known to be good, so that a wrong value is told as that. */
export function refuseTooLargeK(k: number, kField: string, queries: number, limits: RequestLimits): void {
  if (k > limits.maxK) {
    const reason = `${kField} is ${k}; this server gives at most ${limits.maxK} passages per query.`;
    throw tooLarge(kField, reason, 'Ask for fewer.');
  }
  if (k * queries > limits.maxHits) {
    const reason = `${queries} queries with ${k} passages each are more than the ${limits.maxHits} passages of one reply.`;
    throw tooLarge(kField, reason, 'Send fewer queries at a time.');
  }
}

/** The hits of a query that went well; these dialects have no error per query, so one failing query fails the request. */
export function hitsOf(outcome: QueryOutcome, position: number): readonly Hit[] {
  if (outcome.ok) return outcome.hits;
  const { error } = outcome;
  throw new TrawlError(error.code, `Query ${position}: ${error.message}`, {
    details: { ...error.details, query: position },
    cause: error,
  });
}

/** Texts with commas between them. */
export function* separated<T>(items: Iterable<T>, text: (item: T, i: number) => string): Generator<string> {
  let i = 0;
  for (const item of items) yield `${i === 0 ? '' : ','}${text(item, i++)}`;
}

function nothingFor(queries: number): RetrieveResult {
  const nothing: QueryOutcome = {
    ok: true,
    hits: [],
    tokens: 0,
    truncated: false,
    text: '',
    cut: 'nothing',
    certificate: { exact: true, rescored: 0 },
  };
  return { outcomes: new Array<QueryOutcome>(queries).fill(nothing), timings: NO_TIMINGS };
}

function tooLarge(kField: string, reason: string, wayOut: string): RequestError {
  return new RequestError('K_TOO_LARGE', `${reason} ${wayOut}`, [
    { type: 'less_than_equal', loc: ['body', kField], msg: reason },
  ]);
}
