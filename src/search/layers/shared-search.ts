import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { applyTemplate, contextOf } from '../../encoder/text-encoder.ts';
import { filterKey } from '../../engine/filter/filter.ts';
import { LEXICAL_FIELDS } from '../../engine/lexical/lexical-settings.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import {
  isEmbedded,
  isText,
  type RerankSettings,
  type RetrieveCall,
  type RetrieveQuery,
  type RetrieveResult,
} from '../calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import { hybridKey } from '../hybrid/hybrid-settings.ts';
import type { Search } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { SharingStatistics } from '../retriever-statistics.ts';
import { addTimings, NO_TIMINGS } from '../timings.ts';
import { type AnswerCache, firstHits } from './answer-cache.ts';
import { SharedTrees } from './shared-trees.ts';

/** A call in flight. */
interface Flight {
  readonly k: number;
  /** Number of its queries. */
  readonly queries: number;
  /** One outcome per query; null when the call failed or was cancelled. Never rejects. */
  readonly outcomes: Promise<readonly QueryOutcome[] | null>;
}

/** One query of a call in flight. */
interface Leader {
  readonly flight: Flight;
  /** Position of the query in the call. */
  readonly place: number;
}

export interface SharingOptions {
  readonly answerCache?: AnswerCache;
  readonly singleFlight: boolean;
}

/**
 * Computes equal queries once: the rollouts of one question often send the same query. The first call to compute a query is its
 * leader. Later calls with an equal query follow it while it is in flight (single flight), and read the answer cache once it is
 * done. Queries are equal if the parts that the template embeds of them, their truncation, mode, parameters, order, filter, views,
 * reranking and whether the hits have documents are equal; a follower may ask for fewer hits than its leader.
 *
 * When a leader fails or is cancelled, its followers compute the query themselves. Errors are not cached.
 */
export class SharedSearch implements Search {
  readonly #inner: Search;
  readonly #info: RetrieverInfo;
  readonly #cache: AnswerCache | undefined;
  readonly #scope: number;
  readonly #singleFlight: boolean;
  readonly #leaders = new Map<string, Leader>();
  readonly #trees: SharedTrees;
  #queries = 0;
  #cached = 0;
  #computed = 0;
  #coalesced = 0;

  constructor(inner: Search, info: RetrieverInfo, { answerCache, singleFlight }: SharingOptions) {
    this.#inner = inner;
    this.#info = info;
    this.#cache = answerCache;
    this.#scope = answerCache?.newScope() ?? 0;
    this.#singleFlight = singleFlight;
    const search = (call: TreeCall): Promise<TreeResult> => inner.searchTree(call);
    this.#trees = new SharedTrees({ search, cache: answerCache, scope: this.#scope, singleFlight });
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    throwIfCancelled(call.signal);
    this.#queries += countTextQueries(call.queries);
    if (!this.#singleFlight && this.#cache === undefined) {
      this.#computed += countTextQueries(call.queries);
      return this.#inner.retrieve(call);
    }
    const outcomes = new Array<QueryOutcome | undefined>(call.queries.length);
    let unanswered = this.#singleFlight ? distinct(call, this.#info) : each(call, this.#info);
    this.#coalesced += countTextQueries(call.queries) - countTextQueries(unanswered.map(({ query }) => query));
    const answer = (places: readonly number[], outcome: QueryOutcome): void => {
      const wanted = outcome.ok ? firstHits(outcome, call.k) : outcome;
      for (const place of places) outcomes[place] = wanted;
    };
    let timings = NO_TIMINGS;
    while (unanswered.length > 0) {
      const own: UnansweredQuery[] = [];
      const following: (UnansweredQuery & { readonly leader: Leader })[] = [];
      for (const query of unanswered) {
        const cached = this.#cache?.get(this.#scope, query.key, call.k);
        if (cached !== undefined) {
          this.#cached += countTextQueries([query.query]);
          answer(query.places, cached);
          continue;
        }
        const leader = this.#leaderOf(query.key, call);
        if (leader === undefined) own.push(query);
        else following.push({ ...query, leader });
      }
      // Registers the leaders before the first await: a second call must not compute the same query.
      const computing = own.length === 0 ? undefined : this.#compute(own, call);
      const leaders = following.map(({ leader }) => leader.flight.outcomes);
      if (computing !== undefined) {
        const result = await computing;
        timings = addTimings(timings, result.timings);
        for (const [i, { places }] of own.entries()) answer(places, result.outcomes[i]!);
      }
      const waitingSince = performance.now();
      const led = await untilAborted(Promise.all(leaders), call.signal);
      if (following.length > 0) {
        timings = addTimings(timings, { ...NO_TIMINGS, queue: performance.now() - waitingSince });
      }
      unanswered = [];
      for (const [i, query] of following.entries()) {
        const outcome = led[i]?.[query.leader.place];
        if (outcome === undefined) unanswered.push(query);
        else {
          this.#coalesced += countTextQueries([query.query]);
          answer(query.places, outcome);
        }
      }
    }
    return { outcomes: outcomes as QueryOutcome[], timings };
  }

  /** Whether the cache has the answers of all queries. */
  hasAnswers(call: RetrieveCall): boolean {
    return call.queries.every(
      (query) => this.#cache?.has(this.#scope, queryKey(query, call, this.#info), call.k) === true,
    );
  }

  searchTree(call: TreeCall): Promise<TreeResult> {
    return this.#trees.search(call);
  }

  get load(): SharingStatistics {
    const held = this.#cache?.heldBy(this.#scope);
    const trees = this.#trees.counts;
    return {
      queries: this.#queries + trees.queries,
      cached: this.#cached + trees.cached,
      coalesced: this.#coalesced + trees.coalesced,
      computed: this.#computed + trees.computed,
      cacheEntries: held?.entries ?? 0,
      cacheBytes: held?.bytes ?? 0,
      cacheMaxBytes: this.#cache?.maxBytes ?? 0,
    };
  }

  /** Drops the answers from the cache, once the index is closed. */
  forget(): void {
    this.#cache?.forget(this.#scope);
  }

  /** An equal query in flight with at least k hits, whose call is small enough to wait for. */
  #leaderOf(key: string, { k, queries }: RetrieveCall): Leader | undefined {
    const leader = this.#leaders.get(key);
    if (leader === undefined || leader.flight.k < k) return undefined;
    const most = Math.max(MAX_LEADER_QUERIES, MAX_LEADER_FACTOR * queries.length);
    return leader.flight.queries <= most ? leader : undefined;
  }

  async #compute(own: readonly UnansweredQuery[], call: RetrieveCall): Promise<RetrieveResult> {
    const queries = own.map(({ query }) => query);
    this.#computed += countTextQueries(queries);
    const running = this.#inner.retrieve({ ...call, queries });
    const outcomes = running.then(
      (result) => result.outcomes,
      () => null,
    );
    const flight: Flight = { k: call.k, queries: own.length, outcomes };
    const leaders = own.map((_, place): Leader => ({ flight, place }));
    if (this.#singleFlight) for (const [i, { key }] of own.entries()) this.#leaders.set(key, leaders[i]!);
    try {
      const result = await running;
      for (const [i, outcome] of result.outcomes.entries()) {
        // The next search may find the reranker working again.
        if (outcome.ok && outcome.rerank?.ok !== false) this.#cache?.set(this.#scope, own[i]!.key, call.k, outcome);
      }
      return result;
    } finally {
      // A later flight with a larger k may have replaced the leader.
      for (const [i, { key }] of own.entries()) if (this.#leaders.get(key) === leaders[i]) this.#leaders.delete(key);
    }
  }
}

/**
 * A query follows a leader only if the leader's call is small, because the follower waits for that whole call: at most this number
 * of queries, or `MAX_LEADER_FACTOR` times the queries of the follower's own call if that is more.
 */
const MAX_LEADER_QUERIES = 16;
const MAX_LEADER_FACTOR = 4;

/** A query without an answer yet. */
interface UnansweredQuery {
  readonly key: string;
  readonly query: RetrieveQuery;
  /** Its positions in the call; several if the call repeats the query. */
  readonly places: readonly number[];
}

function each(call: RetrieveCall, info: RetrieverInfo): UnansweredQuery[] {
  return call.queries.map((query, place) => ({ key: queryKey(query, call, info), query, places: [place] }));
}

function distinct(call: RetrieveCall, info: RetrieverInfo): UnansweredQuery[] {
  const found = new Map<string, UnansweredQuery & { readonly places: number[] }>();
  for (const [place, { key, query }] of each(call, info).entries()) {
    const known = found.get(key);
    if (known === undefined) found.set(key, { key, query, places: [place] });
    else known.places.push(place);
  }
  return [...found.values()];
}

/**
 * Number of queries that are texts. The counters omit queries with a vector, because they search an already counted query again with
 * a larger k (`retrieveDeepening`).
 */
function countTextQueries(queries: readonly RetrieveQuery[]): number {
  return queries.filter(isText).length;
}

/** Equal keys have equal hits, given the retriever's index, encoder, prefix and analyser. */
function queryKey(
  query: RetrieveQuery,
  {
    k,
    mode,
    bm25,
    bm25Order = 'row',
    filter,
    views = [],
    hybrid,
    rerank,
    template,
    documents = true,
    truncate: truncateOfCall = 'tail',
  }: RetrieveCall,
  { model }: RetrieverInfo,
): string {
  const passing = `${JSON.stringify([...new Set(views)].sort())} ${filter === undefined ? '' : filterKey(filter)}`;
  const lists = hybrid === undefined ? '' : hybridKey(hybrid);
  const firstStage = `${mode ?? ''} ${bm25 === undefined ? '' : parametersKey(bm25)} ${bm25Order} ${lists} ${passing}`;
  const ranking = `${firstStage} ${rerank === undefined ? '' : rerankKey(rerank, k)} ${documents}`;
  const { input: whole, truncate } = isEmbedded(query) ? query : { input: query, truncate: truncateOfCall };
  const input = applyTemplate(whole, template ?? model?.queryTemplate);
  const context = contextOf(input);
  // Both truncate sides shorten a plain text at its end.
  if (typeof input === 'string' || context.length === 0) {
    return `${ranking} text ${typeof input === 'string' ? input : input.query}`;
  }
  // Without a question the first history query takes its place, but truncation treats the two differently.
  const first = input.question.trim() === '' ? 'history' : 'question';
  const lengths = context.map(({ length }) => length).join();
  return `${ranking} ${truncate} ${first} ${lengths} ${context.join('')}${input.query}`;
}

/** The depth with which k hits are found: only among equal depths the hits for a smaller k are the first of those for a larger one. */
function rerankKey({ depth, model, allowFailure = false }: RerankSettings, k: number): string {
  return [Math.max(depth, k), allowFailure, model === undefined ? '' : JSON.stringify(model)].join();
}

/** Tells absent weights and an absent tie breaker from neutral ones, which an index without title and text apart refuses. */
function parametersKey({ k1, b, k1Factor, weights, tieBreaker }: NonNullable<RetrieveCall['bm25']>): string {
  const fields = weights === undefined ? [] : LEXICAL_FIELDS.map((field) => weights[field] ?? '');
  return [k1, b, k1Factor, tieBreaker ?? '', ...fields].join();
}
