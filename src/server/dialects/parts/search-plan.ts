import { TrawlError } from '../../../base/errors.ts';
import type { QueryTemplate } from '../../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../../encoder/text-encoder.ts';
import type { Hit, QueryOutcome } from '../../../search/calls/query-outcome.ts';
import type { Ranking, RetrieveResult } from '../../../search/calls/retrieve-call.ts';
import { type HybridOptions, hybridSettings } from '../../../search/hybrid/hybrid-settings.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import type { SearchMode } from '../../../search/search-mode.ts';
import { NO_TIMINGS } from '../../../search/timings.ts';
import { RequestError } from '../../errors/request-error.ts';
import type { QueryOrigin } from '../../recording/query-origin.ts';
import type { RecordedSearch } from '../../recording/recorded-search.ts';
import type { RequestLimits } from '../../server-config.ts';
import type { Plan } from '../dialect.ts';

export interface SearchPart {
  readonly queries: readonly EncoderInput[];
  /** Hits per query; may be 0. */
  readonly k: number;
  /** Name of the field that has k, for messages. */
  readonly kField: string;
  readonly limits: RequestLimits;
  /** Only for queries that may have a question; others are always truncated at the end. */
  readonly truncate?: TruncateSide;
  /** Only for queries that may have a question or history. */
  readonly template?: QueryTemplate | null;
  /** For the record: see `RecordedSearch`. */
  readonly origins?: readonly QueryOrigin[];
  readonly items?: NonNullable<RecordedSearch['items']>;
}

/**
 * The plan of most dialects: one search, and a reply from its result.
 *
 * @param failuresOf for a reply that has errors per query: these errors, for the log.
 */
export function searchPlan(
  { queries, k, kField, limits, truncate, template = null, origins, items }: SearchPart,
  reply: (result: RetrieveResult, info: RetrieverInfo) => Iterable<string>,
  failuresOf?: (result: RetrieveResult) => readonly TrawlError[],
): Plan {
  refuseTooLargeK(k, kField, queries.length, limits);
  if (limits.rerank !== null) refuseTooLargeK(limits.rerank.depth, 'the depth of reranking', queries.length, limits);
  const request = {
    queries,
    k,
    truncate,
    ...(template === null ? {} : { template }),
    ...rankingFor(limits, k),
  };
  // The question of an action that is not searched for, by which perturbation finds gold passages.
  const asked = origins === undefined ? {} : { asked: origins };
  return {
    queries: queries.length,
    k,
    async run(retriever, signal) {
      const result = k === 0 ? emptyResult(queries.length) : await retriever.retrieve({ ...request, ...asked, signal });
      const known = { origins, items };
      const search = k === 0 ? null : { ...request, ...known, outcomes: result.outcomes };
      const truncated = result.outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
      const failures = failuresOf === undefined ? {} : { failures: failuresOf(result) };
      return { timings: result.timings, search, truncated, ...failures, pieces: reply(result, retriever.info) };
    },
  };
}

/** @throws RequestError K_TOO_LARGE. */
export function refuseTooLargeK(k: number, kField: string, queries: number, limits: RequestLimits): void {
  if (k > limits.maxK) {
    const reason = `${kField} is ${k}; the limit of this server is ${limits.maxK} passages per query.`;
    throw tooLarge(kField, reason, `Lower ${kField}.`);
  }
  if (k * queries > limits.maxHits) {
    const reason = `${queries} queries with ${k} passages each exceed the limit of ${limits.maxHits} passages per reply.`;
    throw tooLarge(kField, reason, 'Send fewer queries per request.');
  }
}

/**
 * The hits of a query, for dialects without errors per query.
 *
 * @throws the query's error with its position; it fails the request.
 */
export function hitsOf(outcome: QueryOutcome, position: number): readonly Hit[] {
  if (outcome.ok) return outcome.hits;
  const { error } = outcome;
  throw new TrawlError(error.code, `Query ${position}: ${error.message}`, {
    details: { ...error.details, query: position },
    cause: error,
  });
}

/**
 * A list of hits for each query, with commas in between.
 *
 * @throws the error of a failed query.
 */
export function* hitLists(outcomes: readonly QueryOutcome[], text: (hit: Hit) => string): Generator<string> {
  for (const [position, outcome] of outcomes.entries()) {
    yield position === 0 ? '[' : ',[';
    yield* separated(hitsOf(outcome, position), text);
    yield ']';
  }
}

/** The texts of items, with commas in between. */
export function* separated<T>(items: Iterable<T>, text: (item: T, i: number) => string): Generator<string> {
  let i = 0;
  for (const item of items) yield `${i === 0 ? '' : ','}${text(item, i++)}`;
}

function emptyResult(queries: number): RetrieveResult {
  const empty: QueryOutcome = {
    ok: true,
    hits: [],
    tokens: 0,
    truncated: false,
    text: '',
    cut: 'nothing',
    vector: null,
    certificate: { exact: true, rescored: 0 },
  };
  return { outcomes: new Array<QueryOutcome>(queries).fill(empty), timings: NO_TIMINGS };
}

function tooLarge(kField: string, reason: string, advice: string): RequestError {
  return new RequestError('K_TOO_LARGE', `${reason} ${advice}`, [
    { type: 'less_than_equal', loc: ['body', ...kField.split('.')], msg: reason },
  ]);
}

/** How a request for `k` hits ranks passages: as the request says, else as the server is configured, else as the index does. */
export function rankingFor(
  { bm25Order, hybrid, rerank, ...config }: RequestLimits,
  k: number,
  request: { readonly mode?: SearchMode | null; readonly hybrid?: HybridOptions | null } = {},
): Ranking {
  const mode = request.mode ?? config.mode;
  const depth = Math.max(k, rerank?.depth ?? 0);
  return {
    ...(mode === null ? {} : { mode }),
    ...(bm25Order === 'row' ? {} : { bm25Order }),
    ...(mode === 'hybrid' ? { hybrid: hybridSettings(request.hybrid ?? {}, depth, hybrid) } : {}),
    ...(rerank === null ? {} : { rerank }),
  };
}
