import { cancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
import { concatenated } from '../../engine/typed-arrays.ts';
import { checkSearchRequest } from '../../engine/vectors/search-checks.ts';
import type {
  SearchGpu,
  SearchLoad,
  SearchRequest,
  SearchResult,
  VectorIndex,
} from '../../engine/vectors/vector-index.ts';
import { BatchSize } from './batch-size.ts';
import { type SearchSlice, WaitingSearch } from './waiting-search.ts';

/**
 * Largest k of the first queue class; each further class has four times the largest k of the class before. Only searches of
 * one class share a batch: a batch runs with its largest k, so in a batch with a much larger k, a search for a few hits would take
 * longer than alone.
 */
const SMALLEST_CLASS = 16;
/** Target batch size while more queries are expected. */
const TARGET_QUERIES = 32;
/** Batches that run at a time for throughput. */
const THROUGHPUT_BATCHES = 2;
/** Longest wait for the target size, in milliseconds. */
const MAX_WAIT_MS = 25;

export interface QueuedIndexOptions {
  /**
   * Whether more queries are likely to arrive soon because texts are waiting for the encoder. Then a small batch is held back: a
   * pass over the codes costs nearly as much for a few queries as for 30, and takes cores from the encoder. Default: never.
   */
  readonly expectsMore?: () => boolean;
  /**
   * Queries of a batch, for throughput. Two batches run at a time, so that the engine has work while the event loop handles the results
   * of the other. A batch takes the queries of the waiting searches in their order, up to this number. Default: one batch at a time, of as
   * many queries as a target time allows (`BatchSize`), shared by all searches, so that later queries do not wait long.
   */
  readonly batchQueries?: number;
}

/**
 * Batches the searches of an engine. While one batch runs, further searches queue. The next batch takes an equal share of
 * queries from each queued search, so that a call with thousands of queries spreads over several batches and a single query does not
 * wait for it. An idle engine starts at the end of the current tick; only while `expectsMore` is true does the queue hold back
 * a small batch for a moment.
 *
 * A batch runs with the largest k of its searches, and each search keeps its own first k hits. The exact hits for a smaller k are the
 * first of the exact hits for a larger k, so an answer has the same bits in any batch.
 */
export class QueuedIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: Metric;
  readonly residentBytes: number;
  readonly touchedBytes: number;
  readonly mappedBytes: number;
  readonly gpu: SearchGpu | undefined;
  readonly #engine: VectorIndex;
  readonly #expectsMore: () => boolean;
  readonly #batchQueries: number | undefined;
  readonly #batchesAtOnce: number;
  /** In round-robin order. */
  readonly #waiting: WaitingSearch[] = [];
  /** The batch size of each queue class. */
  readonly #sizers = new Map<number, BatchSize>();
  /** Called when no search runs or waits. */
  readonly #onIdle: (() => void)[] = [];
  readonly #counts = { waitingQueries: 0, queries: 0, droppedQueries: 0, batches: 0, rescoredRows: 0, fullScans: 0 };
  /** Entry i counts the batches of 2^i to 2^(i+1) - 1 queries. */
  readonly #batchSizes: number[] = [];
  #running = 0;
  #planned = false;
  #waitTimer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  constructor(engine: VectorIndex, { expectsMore = () => false, batchQueries }: QueuedIndexOptions = {}) {
    this.dimension = engine.dimension;
    this.rows = engine.rows;
    this.metric = engine.metric;
    this.residentBytes = engine.residentBytes;
    this.touchedBytes = engine.touchedBytes;
    this.mappedBytes = engine.mappedBytes;
    this.gpu = engine.gpu;
    this.#engine = engine;
    this.#expectsMore = expectsMore;
    this.#batchQueries = batchQueries;
    this.#batchesAtOnce = batchQueries === undefined ? 1 : THROUGHPUT_BATCHES;
  }

  get load(): SearchLoad {
    const waitingByClass = new Map<number, number>();
    for (const { queueClass, remaining } of this.#waiting) {
      waitingByClass.set(queueClass, (waitingByClass.get(queueClass) ?? 0) + remaining);
    }
    let expectedWaitMs = 0;
    for (const [queueClass, waiting] of waitingByClass)
      expectedWaitMs += this.#sizers.get(queueClass)?.expectedMs(waiting) ?? 0;
    return { ...this.#counts, expectedWaitMs, batchSizes: [...this.#batchSizes] };
  }

  async search(request: SearchRequest): Promise<SearchResult> {
    // An invalid request in a batch would fail the whole batch.
    checkSearchRequest(request, this);
    if (this.#closing !== undefined) throw new TrawlError('NOT_READY', 'The index is closed.');
    if (request.signal?.aborted === true) throw cancelled();
    if (request.count === 0) return this.#engine.search(request);
    const search = new WaitingSearch(request, queueClass(request.k), (queries) => {
      this.#counts.waitingQueries -= queries;
      this.#counts.droppedQueries += queries;
    });
    this.#waiting.push(search);
    this.#counts.waitingQueries += request.count;
    this.#plan();
    return search.result;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    // Starts a batch that is being held back.
    this.#plan();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#running > 0 || this.#counts.waitingQueries > 0) {
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
    }
    await this.#engine.close();
  }

  /** Dispatches at the end of this tick, so that searches that arrive in one tick share a batch. */
  #plan(): void {
    if (this.#running === this.#batchesAtOnce || this.#planned) return;
    this.#planned = true;
    process.nextTick(() => {
      this.#planned = false;
      this.#dispatch();
    });
  }

  /** Whether to hold back the next batch. If so, sets a timer that dispatches it. */
  #holdsBack(): boolean {
    clearTimeout(this.#waitTimer);
    const { waitingQueries } = this.#counts;
    if (waitingQueries === 0 || waitingQueries >= TARGET_QUERIES) return false;
    if (this.#closing !== undefined || !this.#expectsMore()) return false;
    // The first search is not always the oldest: round robin moves searches back.
    const oldest = this.#waiting.reduce(
      (time, search) => (search.hasWork ? Math.min(time, search.since) : time),
      Number.POSITIVE_INFINITY,
    );
    const left = oldest + MAX_WAIT_MS - performance.now();
    if (left <= 0) return false;
    this.#waitTimer = setTimeout(() => this.#plan(), left);
    return true;
  }

  #dispatch(): void {
    while (this.#running < this.#batchesAtOnce) {
      if (this.#holdsBack()) return;
      const batch = this.#gather();
      if (batch === undefined) break;
      this.#running++;
      void this.#run(batch).finally(() => {
        this.#running--;
        this.#dispatch();
      });
    }
    if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /**
   * Takes the slices of the next batch, from searches of one class with one filter: an equal share of each search, or with `batchQueries`
   * the queries in their order. Undefined if nothing waits.
   */
  #gather(): readonly SearchSlice[] | undefined {
    while (this.#waiting[0]?.hasWork === false) this.#waiting.shift();
    const first = this.#waiting[0];
    if (first === undefined) return undefined;
    const batchMates = this.#waiting.filter(
      ({ hasWork, queueClass, request }) =>
        hasWork && queueClass === first.queueClass && request.filter === first.request.filter,
    );
    const size = this.#batchQueries ?? this.#sizerOf(first.queueClass).queries;
    const slices: SearchSlice[] = [];
    let left = size;
    for (let mates = batchMates; mates.length > 0 && left > 0; mates = mates.filter((search) => search.hasWork)) {
      const share = this.#batchQueries === undefined ? Math.max(1, Math.floor(left / mates.length)) : left;
      for (const search of mates) {
        if (left === 0) break;
        const slice = search.take(Math.min(share, left));
        left -= slice.count;
        slices.push(slice);
      }
    }
    this.#counts.waitingQueries -= size - left;
    if (this.#batchQueries === undefined) this.#moveBack(new Set(slices.map(({ search }) => search)));
    return slices;
  }

  /** Moves the searches of the started batch behind the others. */
  #moveBack(started: ReadonlySet<WaitingSearch>): void {
    const waiting = this.#waiting.splice(0).filter((search) => search.hasWork);
    for (const search of waiting.filter((each) => !started.has(each))) this.#waiting.push(search);
    for (const search of waiting.filter((each) => started.has(each))) this.#waiting.push(search);
  }

  async #run(slices: readonly SearchSlice[]): Promise<void> {
    const searches = new Set(slices.map(({ search }) => search));
    const count = slices.reduce((sum, slice) => sum + slice.count, 0);
    const k = slices.reduce((largest, { search }) => Math.max(largest, search.request.k), 1);
    const { search: first } = slices[0]!;
    const controller = new AbortController();
    // The batch is cancelled once every search in it is cancelled.
    const stopWatching = [...searches].map((search) =>
      search.onCancel(() => {
        if ([...searches].every((each) => each.isSettled)) controller.abort();
      }),
    );
    const started = performance.now();
    try {
      const found = await this.#engine.search({
        queries: concatenated(slices.map(({ vectors }) => vectors)),
        count,
        k,
        filter: first.request.filter,
        signal: controller.signal,
      });
      this.#sizerOf(first.queueClass).observe(count, performance.now() - started);
      this.#countBatch(count, found);
      let at = 0;
      for (const slice of slices) {
        slice.search.accept(slice, found, at);
        at += slice.count;
      }
    } catch (error) {
      // One failing search must not fail the others: each runs again alone.
      if (searches.size > 1 && !controller.signal.aborted) await this.#runSeparately(slices);
      else for (const search of searches) search.fail(error);
    } finally {
      for (const stop of stopWatching) stop();
    }
  }

  async #runSeparately(slices: readonly SearchSlice[]): Promise<void> {
    const bySearch = new Map<WaitingSearch, SearchSlice[]>();
    for (const slice of slices) bySearch.set(slice.search, [...(bySearch.get(slice.search) ?? []), slice]);
    for (const [search, own] of bySearch) if (!search.isSettled) await this.#run(own);
  }

  #countBatch(queries: number, { certificate }: SearchResult): void {
    const counts = this.#counts;
    counts.batches++;
    counts.queries += queries;
    const bucket = Math.floor(Math.log2(queries));
    while (this.#batchSizes.length <= bucket) this.#batchSizes.push(0);
    this.#batchSizes[bucket]!++;
    if (certificate === null) return;
    counts.fullScans += certificate.fullScans;
    for (const rows of certificate.rescored) counts.rescoredRows += rows;
  }

  #sizerOf(queueClass: number): BatchSize {
    const sizer = this.#sizers.get(queueClass) ?? new BatchSize();
    this.#sizers.set(queueClass, sizer);
    return sizer;
  }
}

/** The queue class of a search for k hits, named by the largest k in it. */
function queueClass(k: number): number {
  let largest = SMALLEST_CLASS;
  while (largest < k) largest *= 4;
  return largest;
}
