import { TrawlError } from '../../../base/errors.ts';
import type { TimeSlice } from '../../../base/time-slice.ts';
import type { QueryTemplate } from '../../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../../encoder/text-encoder.ts';
import { withContents } from '../../../index/passages/contents.ts';
import { documentFields } from '../../../index/passages/document-fields.ts';
import { EMPTY_ANSWER, type Hit, type QueryAnswer, type QueryOutcome } from '../../../search/calls/query-outcome.ts';
import type { Ranking, RetrieveCall, RetrieveResult } from '../../../search/calls/retrieve-call.ts';
import { retrieveDeepening } from '../../../search/deepening.ts';
import { type HybridOptions, hybridSettings } from '../../../search/hybrid/hybrid-settings.ts';
import type { Retriever } from '../../../search/retriever.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import type { SearchMode } from '../../../search/search-mode.ts';
import { NO_TIMINGS } from '../../../search/timings.ts';
import { RequestError } from '../../errors/request-error.ts';
import { type Selected, type Selection, select } from '../../native-search/fusion.ts';
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
 * @param failuresOf the errors of single queries, for the log. Only in dialects whose replies have errors per query.
 */
export function searchPlan(
  { queries, k, kField, limits, truncate, template, origins, items }: SearchPart,
  reply: (result: RetrieveResult, info: RetrieverInfo) => Iterable<string>,
  failuresOf?: (result: RetrieveResult) => readonly TrawlError[],
): Plan {
  refuseTooLargeK(k, kField, queries.length, limits);
  if (limits.rerank) refuseTooLargeK(limits.rerank.depth, 'the depth of reranking', queries.length, limits);
  const call = { queries, k, truncate, template: template ?? undefined, ...rankingFor(limits, k) };
  return {
    queries: queries.length,
    k,
    async run(retriever, signal) {
      // `asked`: a search hook finds the gold passages of a query by its question, even if the question itself is not searched for.
      const result =
        k === 0
          ? { outcomes: queries.map(() => EMPTY_ANSWER), timings: NO_TIMINGS }
          : await retriever.retrieve({ ...call, asked: origins, signal });
      const { outcomes, timings } = result;
      return {
        timings,
        search: k === 0 ? undefined : { ...call, origins, items, outcomes },
        truncated: truncatedQueries(outcomes),
        failures: failuresOf?.(result),
        pieces: reply(result, retriever.info),
      };
    },
  };
}

interface SelectedHits {
  readonly selection: Selection;
  /** Largest number of hits per query that may be searched for. */
  readonly maxK: number;
  /** Hits that a list needs; see `select`. */
  readonly length: number;
  readonly acrossLists: boolean;
  readonly slice: TimeSlice;
}

/** A search that goes deeper until deduplication leaves enough hits. */
export async function searchSelected(
  retriever: Retriever,
  call: RetrieveCall,
  { selection, maxK, length, acrossLists, slice }: SelectedHits,
): Promise<RetrieveResult & { readonly lists: readonly Selected[] }> {
  let lists: readonly Selected[] = [];
  const result = await retrieveDeepening(retriever, call, {
    maxK,
    async needMore(found) {
      lists = await select(found, selection, { length, acrossLists }, slice);
      return lists.flatMap(({ full }, i) => (full ? [] : [i]));
    },
  });
  const cut = lists.map((list, i): Selected => {
    const outcome = result.outcomes[i]!;
    const isCut = !list.full && outcome.ok && outcome.hits.length >= maxK;
    return isCut ? { ...list, short: 'limit' } : list;
  });
  return { ...result, lists: cut };
}

export function truncatedQueries(outcomes: readonly QueryOutcome[]): number {
  return outcomes.filter((outcome) => outcome.ok && outcome.truncated).length;
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

/** @param field a path of names with dots in between. */
export function tooLarge(field: string, reason: string, advice: string): RequestError {
  return new RequestError('K_TOO_LARGE', `${reason} ${advice}`, [
    { type: 'less_than_equal', loc: ['body', ...field.split('.')], msg: reason },
  ]);
}

/** How a request for `k` hits ranks passages: as the request says, else as the server is configured, else as the index does. */
export function rankingFor(
  { bm25Order, hybrid, rerank, ...config }: RequestLimits,
  k: number,
  request: { readonly mode?: SearchMode | null; readonly hybrid?: HybridOptions | null } = {},
): Ranking {
  const mode = request.mode ?? config.mode ?? undefined;
  const depth = Math.max(k, rerank?.depth ?? 0);
  return {
    mode,
    bm25Order: bm25Order === 'row' ? undefined : bm25Order,
    hybrid: mode === 'hybrid' ? hybridSettings(request.hybrid ?? {}, depth, hybrid) : undefined,
    rerank: rerank ?? undefined,
  };
}

/** A template in pieces. A value is a text or a number, which is inserted as it is, or a sequence of pieces. */
export function* pieces(
  texts: TemplateStringsArray,
  ...values: readonly (string | number | Iterable<string>)[]
): Generator<string> {
  for (const [i, text] of texts.entries()) {
    yield text;
    const value = values[i] ?? '';
    if (typeof value === 'object') yield* value;
    else yield String(value);
  }
}

/** The texts of items, with commas in between. */
export function* separated<T>(items: Iterable<T>, text: (item: T, i: number) => string): Generator<string> {
  let i = 0;
  for (const item of items) yield `${i === 0 ? '' : ','}${text(item, i++)}`;
}

/**
 * The hits of a query, for dialects without errors per query.
 *
 * @throws the error of the query, with the query's position. It fails the request.
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
 * A JSON list of hits for each query, with commas in between: `[…],[…]`. The caller writes the brackets around them.
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

/**
 * `{"result":[[…],…]}` in pieces, one list per query. Passages are inserted as they are stored, without being parsed. If
 * queries were truncated, `truncated` has their positions, and if the reranker failed on queries, `unreranked`; clients ignore
 * unknown keys.
 *
 * @param head members before `result`, each followed by a comma.
 */
export function resultLists(
  outcomes: readonly QueryOutcome[],
  hitText: (hit: Hit) => string,
  head = '',
): Iterable<string> {
  const unreranked = positionsMember('unreranked', outcomes, ({ rerank }) => rerank?.ok === false);
  return pieces`{${head}"result":[${hitLists(outcomes, hitText)}]${truncatedMember(outcomes)}${unreranked}}`;
}

export function scoredHit(hit: Hit): string {
  return `{"document":${withContents(hit.document)},"score":${JSON.stringify(hit.score)}}`;
}

export function bareHit(hit: Hit): string {
  return withContents(hit.document);
}

/** A hit as the JSON string of its contents. */
export function textHit(hit: Hit): string {
  return JSON.stringify(documentFields(hit.document).contents);
}

export function scoreHit(hit: Hit): string {
  return JSON.stringify(hit.score);
}

/** `,"truncated":[…]`, or nothing if no query was truncated. */
export function truncatedMember(outcomes: readonly QueryOutcome[]): string {
  return positionsMember('truncated', outcomes, ({ truncated }) => truncated);
}

function positionsMember(
  name: string,
  outcomes: readonly QueryOutcome[],
  has: (outcome: QueryAnswer) => boolean,
): string {
  const positions = outcomes.flatMap((outcome, i) => (outcome.ok && has(outcome) ? [i] : []));
  return positions.length === 0 ? '' : `,"${name}":[${positions.join(',')}]`;
}
