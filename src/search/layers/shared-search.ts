import { createHash } from 'node:crypto';
import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { applyTemplate, contextOf } from '../../encoder/text-encoder.ts';
import { filterKey } from '../../engine/filter/filter.ts';
import type { QueryOutcome } from '../calls/query-outcome.ts';
import {
  isEmbedded,
  isText,
  type RerankSettings,
  type RetrieveCall,
  type RetrieveQuery,
  type RetrieveResult,
  type RowScope,
} from '../calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import { hybridKey } from '../hybrid/hybrid-settings.ts';
import type { Search } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { SharingStatistics } from '../retriever-statistics.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../timings.ts';
import { type AnswerCache, firstHits } from './answer-cache.ts';

/** A query in flight. */
interface Leader {
  /** The k and the number of queries of its call. */
  readonly k: number;
  readonly queries: number;
  /** The outcomes of its call; none when the call failed or was cancelled. Never rejects. */
  readonly outcomes: Promise<readonly QueryOutcome[]>;
  /** Its position in its call. */
  readonly place: number;
}

interface CalledQuery {
  readonly key: string;
  readonly query: RetrieveQuery;
  /** Its positions in the call; several if the call repeats the query. */
  readonly places: number[];
  /** Undefined until it is answered. */
  outcome?: QueryOutcome | undefined;
}

/**
 * A query follows a leader only if the leader's call is small, because the follower waits for that whole call: at most this number
 * of queries, or `MAX_LEADER_FACTOR` times the queries of the follower's own call if that is more.
 */
const MAX_LEADER_QUERIES = 16;
const MAX_LEADER_FACTOR = 4;

/**
 * Computes equal queries once: the rollouts of one question often send the same query. The first call to compute a query is its
 * leader. Later calls with an equal query follow it while it is in flight (single flight), and read the answer cache once it is
 * done. Queries are equal if the template keeps the same texts of them, if they have the same truncation, mode, parameters, order, filter,
 * views, exclusions and reranking, and if both or neither want documents; a follower may want fewer hits than its leader. Query trees are equal if
 * they have the same key, parameters, filter, views, order, limits and page. A tree without a key equals no other tree.
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
  /** Query trees in flight. A promise resolves to undefined if its search failed or was cancelled, and never rejects. */
  readonly #trees = new Map<string, Promise<TreeResult | undefined>>();
  readonly #counts = { queries: 0, cached: 0, computed: 0, coalesced: 0 };

  constructor(
    inner: Search,
    info: RetrieverInfo,
    { answerCache, singleFlight }: { readonly answerCache?: AnswerCache; readonly singleFlight: boolean },
  ) {
    this.#inner = inner;
    this.#info = info;
    this.#cache = answerCache;
    this.#scope = answerCache?.newScope() ?? 0;
    this.#singleFlight = singleFlight;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    throwIfCancelled(call.signal);
    this.#counts.queries += countTexts(call.queries);
    if (!this.#singleFlight && this.#cache === undefined) {
      this.#counts.computed += countTexts(call.queries);
      return this.#inner.retrieve(call);
    }
    const queries = this.#distinct(call);
    this.#counts.coalesced += countTexts(call.queries) - countTexts(queries.map(({ query }) => query));
    let timings = NO_TIMINGS;
    // Queries whose leader failed are still open after a round.
    for (let open = queries; open.length > 0; open = open.filter(({ outcome }) => outcome === undefined)) {
      timings = addTimings(timings, await this.#answer(open, call));
    }
    const outcomes = new Array<QueryOutcome>(call.queries.length);
    for (const { outcome, places } of queries) {
      const wanted = outcome!.ok ? firstHits(outcome!, call.k) : outcome!;
      for (const place of places) outcomes[place] = wanted;
    }
    return { outcomes, timings };
  }

  async searchTree(call: TreeCall): Promise<TreeResult> {
    throwIfCancelled(call.signal);
    this.#counts.queries++;
    if (call.key === undefined || (this.#cache === undefined && !this.#singleFlight)) return this.#computeTree(call);
    const key = treeKey(call);
    const since = performance.now();
    for (;;) {
      const cached = this.#cache?.getTree(this.#scope, key);
      if (cached !== undefined) {
        this.#counts.cached++;
        return cached;
      }
      const leader = this.#trees.get(key);
      if (leader === undefined) break;
      const result = await untilAborted(leader, call.signal);
      if (result === undefined) continue;
      this.#counts.coalesced++;
      return { ...result, timings: { ...NO_TIMINGS, queue: performance.now() - since } };
    }
    const computing = this.#computeTree(call);
    const leader = computing.catch(() => undefined);
    if (this.#singleFlight) this.#trees.set(key, leader);
    try {
      const result = await computing;
      this.#cache?.setTree(this.#scope, key, result);
      return result;
    } finally {
      if (this.#trees.get(key) === leader) this.#trees.delete(key);
    }
  }

  /** Whether the cache has the answers of all queries. */
  hasAnswers(call: RetrieveCall): boolean {
    if (this.#cache === undefined) return false;
    const ranking = rankingKey(call);
    return call.queries.every((query) =>
      this.#cache?.has(this.#scope, queryKey(query, ranking, call, this.#info), call.k),
    );
  }

  get load(): SharingStatistics {
    const held = this.#cache?.heldBy(this.#scope);
    return {
      ...this.#counts,
      cacheEntries: held?.entries ?? 0,
      cacheBytes: held?.bytes ?? 0,
      cacheMaxBytes: this.#cache?.maxBytes ?? 0,
    };
  }

  /** Drops the answers from the cache, once the index is closed. */
  forget(): void {
    this.#cache?.forget(this.#scope);
  }

  /** The queries of a call; with single flight, equal ones only once. */
  #distinct(call: RetrieveCall): CalledQuery[] {
    const queries = new Map<string | number, CalledQuery>();
    const ranking = rankingKey(call);
    for (const [place, query] of call.queries.entries()) {
      const key = queryKey(query, ranking, call, this.#info);
      const entry = this.#singleFlight ? key : place;
      const same = queries.get(entry);
      if (same === undefined) queries.set(entry, { key, query, places: [place] });
      else same.places.push(place);
    }
    return [...queries.values()];
  }

  /** Sets the outcome of each query: from the cache, from its leader, or computed. It stays undefined if the leader fails. */
  async #answer(queries: readonly CalledQuery[], call: RetrieveCall): Promise<StageTimings> {
    const own: CalledQuery[] = [];
    const following: { readonly query: CalledQuery; readonly leader: Leader }[] = [];
    for (const query of queries) {
      query.outcome = this.#cache?.get(this.#scope, query.key, call.k);
      const leader = query.outcome === undefined ? this.#leaderOf(query.key, call) : undefined;
      if (query.outcome !== undefined) this.#counts.cached += countTexts([query.query]);
      else if (leader === undefined) own.push(query);
      else following.push({ query, leader });
    }
    // Makes `own` leaders before the first await: a second call must not compute the same queries.
    const timings = own.length === 0 ? NO_TIMINGS : await this.#compute(own, call);
    throwIfCancelled(call.signal);
    if (following.length === 0) return timings;
    const waitingSince = performance.now();
    const led = await untilAborted(Promise.all(following.map(({ leader }) => leader.outcomes)), call.signal);
    for (const [i, { query, leader }] of following.entries()) {
      query.outcome = led[i]![leader.place];
      if (query.outcome !== undefined) this.#counts.coalesced += countTexts([query.query]);
    }
    return addTimings(timings, { ...NO_TIMINGS, queue: performance.now() - waitingSince });
  }

  /** An equal query in flight with at least k hits, whose call is small enough to wait for. */
  #leaderOf(key: string, { k, queries }: RetrieveCall): Leader | undefined {
    const leader = this.#leaders.get(key);
    if (leader === undefined || leader.k < k) return undefined;
    const most = Math.max(MAX_LEADER_QUERIES, MAX_LEADER_FACTOR * queries.length);
    return leader.queries <= most ? leader : undefined;
  }

  async #compute(own: readonly CalledQuery[], call: RetrieveCall): Promise<StageTimings> {
    const queries = own.map(({ query }) => query);
    this.#counts.computed += countTexts(queries);
    const running = this.#inner.retrieve({ ...call, queries });
    const flight = {
      k: call.k,
      queries: own.length,
      outcomes: running.then(
        ({ outcomes }) => outcomes,
        () => [],
      ),
    };
    const leaders = own.map((_, place): Leader => ({ ...flight, place }));
    if (this.#singleFlight) for (const [i, { key }] of own.entries()) this.#leaders.set(key, leaders[i]!);
    try {
      const { outcomes, timings } = await running;
      for (const [i, outcome] of outcomes.entries()) {
        own[i]!.outcome = outcome;
        // The next search may find the reranker working again.
        if (outcome.ok && outcome.rerank?.ok !== false) this.#cache?.set(this.#scope, own[i]!.key, call.k, outcome);
      }
      return timings;
    } finally {
      // A later flight with a larger k may have replaced the leader.
      for (const [i, { key }] of own.entries()) if (this.#leaders.get(key) === leaders[i]) this.#leaders.delete(key);
    }
  }

  #computeTree(call: TreeCall): Promise<TreeResult> {
    this.#counts.computed++;
    return this.#inner.searchTree(call);
  }
}

/**
 * Number of queries that are texts. A query with a vector is not counted, because it was counted as a text before: it is searched again
 * with a larger k (`retrieveDeepening`).
 */
function countTexts(queries: readonly RetrieveQuery[]): number {
  return queries.filter(isText).length;
}

/** What the queries of a call have in common in their keys. */
function rankingKey(call: RetrieveCall): string {
  const { mode = '', bm25, bm25Order = 'row', hybrid, rerank, exclude, documents = true } = call;
  const lists = hybrid === undefined ? '' : hybridKey(hybrid);
  const firstStage = `${mode} ${bm25 === undefined ? '' : parametersKey(bm25)} ${bm25Order} ${lists} ${scopeKey(call)}`;
  // Hashed, because it may have thousands of ids, and a key is kept for each query.
  const ids = exclude?.length
    ? createHash('sha256')
        .update(JSON.stringify([...new Set(exclude)].sort()))
        .digest('hex')
    : '';
  return `${firstStage} ${ids} ${rerank === undefined ? '' : rerankKey(rerank, call.k)} ${documents}`;
}

/** Equal keys have equal hits, given the retriever's index, encoder, prefix and analyser. */
function queryKey(query: RetrieveQuery, ranking: string, call: RetrieveCall, { model }: RetrieverInfo): string {
  const { template } = call;
  const { input: whole, truncate = 'tail' } = isEmbedded(query) ? query : { input: query, truncate: call.truncate };
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

function scopeKey({ filter, views = [] }: RowScope): string {
  return `${JSON.stringify([...new Set(views)].sort())} ${filter === undefined ? '' : filterKey(filter)}`;
}

/** Has the depth with which k hits are found: only with equal depths, the hits for a smaller k are the first hits for a larger k. */
function rerankKey({ depth, model, allowFailure = false }: RerankSettings, k: number): string {
  return [Math.max(depth, k), allowFailure, model === undefined ? '' : JSON.stringify(model)].join();
}

/** An absent weight or tie breaker has another key than a neutral one: an index of one field accepts only the absent one. */
function parametersKey({ k1, b, k1Factor, weights, tieBreaker }: NonNullable<RetrieveCall['bm25']>): string {
  return JSON.stringify([k1, b, k1Factor, tieBreaker, weights && Object.entries(weights).sort()]);
}

/** Equal keys have equal results, given the retriever's index and analyser. */
function treeKey(call: TreeCall): string {
  const { key, parameters, from, size, count, minScore, order, after, scored } = call;
  const { k1, b, k1Factor } = parameters;
  return JSON.stringify([k1, b, k1Factor, scopeKey(call), from, size, count, minScore, order, after, scored, key]);
}
