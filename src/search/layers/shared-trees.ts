import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { filterKey } from '../../engine/filter/filter.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import type { SharingStatistics } from '../retriever-statistics.ts';
import { NO_TIMINGS } from '../timings.ts';
import type { AnswerCache } from './answer-cache.ts';

type Counts = Pick<SharingStatistics, 'queries' | 'cached' | 'coalesced' | 'computed'>;

export interface SharedTreesOptions {
  readonly search: (call: TreeCall) => Promise<TreeResult>;
  readonly cache: AnswerCache | undefined;
  /** The scope of the retriever in the cache. */
  readonly scope: number;
  readonly singleFlight: boolean;
}

/**
 * Computes equal searches by query trees once, as `SharedSearch` does for queries. Searches are equal if their keys, parameters,
 * filter, order, limits and page are equal; those without a key never are.
 */
export class SharedTrees {
  readonly #options: SharedTreesOptions;
  /** Searches in flight. Undefined when one failed or was cancelled; they never reject. */
  readonly #leaders = new Map<string, Promise<TreeResult | undefined>>();
  readonly #counts = { queries: 0, cached: 0, coalesced: 0, computed: 0 };

  constructor(options: SharedTreesOptions) {
    this.#options = options;
  }

  get counts(): Counts {
    return this.#counts;
  }

  async search(call: TreeCall): Promise<TreeResult> {
    const { cache, scope, singleFlight } = this.#options;
    throwIfCancelled(call.signal);
    this.#counts.queries++;
    if (call.key === undefined || (cache === undefined && !singleFlight)) return this.#compute(call);
    const key = keyOf(call, call.key);
    const since = performance.now();
    for (;;) {
      const cached = cache?.getTree(scope, key);
      if (cached !== undefined) {
        this.#counts.cached++;
        return cached;
      }
      const leader = this.#leaders.get(key);
      if (leader === undefined) break;
      const result = await untilAborted(leader, call.signal);
      if (result === undefined) continue;
      this.#counts.coalesced++;
      return { ...result, timings: { ...NO_TIMINGS, queue: performance.now() - since } };
    }
    const computing = this.#compute(call);
    const leader = computing.catch(() => undefined);
    if (singleFlight) this.#leaders.set(key, leader);
    try {
      const result = await computing;
      cache?.setTree(scope, key, result);
      return result;
    } finally {
      if (this.#leaders.get(key) === leader) this.#leaders.delete(key);
    }
  }

  #compute(call: TreeCall): Promise<TreeResult> {
    this.#counts.computed++;
    return this.#options.search(call);
  }
}

/** Equal keys have equal results, given the retriever's index and analyser. */
function keyOf(
  { parameters, filter, views = [], from, size, count, minScore, order, after, scored }: TreeCall,
  query: string,
): string {
  const { k1, b, k1Factor } = parameters;
  const passing = filter === undefined ? '' : filterKey(filter);
  const among = [...new Set(views)].sort();
  return JSON.stringify([k1, b, k1Factor, passing, among, from, size, count, minScore, order, after, scored, query]);
}
