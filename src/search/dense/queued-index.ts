import { cancelled } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../../engine/metric.ts';
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
   * many queries as a target time allows (`batch-size.ts`), shared by all searches, so that later queries do not wait long.
   */
  readonly batchQueries?: number;
}

/**
 * Batches the searches of an engine. While one batch runs, further searches queue. The next batch takes an equal share of
 * queries from each of them, so that a call with thousands of queries spreads over several batches and a single query does not
 * wait for it. An idle engine starts at the end of the current tick; only while `expectsMore` is true does the queue hold back
 * a small batch for a moment.
 *
 * A batch runs with the largest k of its searches, and each search keeps its first k hits. The exact top-k for a smaller k is a
 * prefix of that for a larger one, so an answer has the same bits in any batch.
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
  /** Entry i counts the batches of 2^i to 2^(i+1) - 1 queries. */
  readonly #batchSizeHistogram: number[] = [];
  #running = 0;
  #planned = false;
  #waitTimer: NodeJS.Timeout | null = null;
  #closing: Promise<void> | undefined;
  #waitingQueries = 0;
  #queries = 0;
  #dropped = 0;
  #batches = 0;
  #rescored = 0;
  #fullScans = 0;

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
    let expectedWaitMs = 0;
    for (const [queueClass, waiting] of this.#waitingByClass()) {
      expectedWaitMs += this.#sizers.get(queueClass)?.expectedMs(waiting) ?? 0;
    }
    return {
      waitingQueries: this.#waitingQueries,
      expectedWaitMs,
      queries: this.#queries,
      droppedQueries: this.#dropped,
      batches: this.#batches,
      batchSizes: [...this.#batchSizeHistogram],
      rescoredRows: this.#rescored,
      fullScans: this.#fullScans,
    };
  }

  async search(request: SearchRequest): Promise<SearchResult> {
    // An invalid request in a batch would fail the whole batch.
    checkSearchRequest(request, this.dimension);
    if (this.#closing !== undefined) throw new TrawlError('NOT_READY', 'The index is closed.');
    if (request.signal?.aborted === true) throw cancelled();
    if (request.count === 0) return this.#engine.search(request);
    const search = new WaitingSearch(request, classOf(request.k), (queries) => {
      this.#waitingQueries -= queries;
      this.#dropped += queries;
    });
    this.#waiting.push(search);
    this.#waitingQueries += request.count;
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
    if (this.#running > 0 || this.#waitingQueries > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
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
    if (this.#waitTimer !== null) clearTimeout(this.#waitTimer);
    this.#waitTimer = null;
    if (this.#waitingQueries === 0 || this.#closing !== undefined) return false;
    if (this.#waitingQueries >= TARGET_QUERIES || !this.#expectsMore()) return false;
    // The first search is not always the oldest: round robin moves searches back.
    let oldest = Number.POSITIVE_INFINITY;
    for (const { hasWork, since } of this.#waiting) if (hasWork) oldest = Math.min(oldest, since);
    const left = oldest + MAX_WAIT_MS - performance.now();
    if (left <= 0) return false;
    this.#waitTimer = setTimeout(() => this.#plan(), left);
    return true;
  }

  #dispatch(): void {
    while (this.#running < this.#batchesAtOnce) {
      if (this.#holdsBack()) return;
      const batch = this.#gather();
      if (batch === null) break;
      this.#running++;
      void this.#run(batch).finally(() => {
        this.#running--;
        this.#dispatch();
      });
    }
    if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Takes the slices of the next batch: of searches of one class, an equal share of each or in their order. Null when nothing waits. */
  #gather(): readonly SearchSlice[] | null {
    while (this.#waiting[0]?.hasWork === false) this.#waiting.shift();
    const first = this.#waiting[0];
    if (first === undefined) return null;
    const batchMates = this.#waiting.filter((search) => search.hasWork && search.canShareBatch(first));
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
    this.#waitingQueries -= size - left;
    if (this.#batchQueries === undefined) this.#moveBack(new Set(slices.map(({ search }) => search)));
    return slices;
  }

  /** Moves the searches of the started batch behind the others. */
  #moveBack(started: ReadonlySet<WaitingSearch>): void {
    const waiting = this.#waiting.splice(0).filter((search) => search.hasWork);
    for (const search of waiting) if (!started.has(search)) this.#waiting.push(search);
    for (const search of waiting) if (started.has(search)) this.#waiting.push(search);
  }

  async #run(slices: readonly SearchSlice[]): Promise<void> {
    const searches = new Set(slices.map(({ search }) => search));
    const count = slices.reduce((sum, slice) => sum + slice.count, 0);
    const k = Math.max(...[...searches].map((search) => search.k));
    const [{ search: first }] = slices as readonly [SearchSlice];
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
        queries: vectorsOf(slices, count, this.dimension),
        count,
        k,
        filter: first.filter,
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
    this.#batches++;
    this.#queries += queries;
    const bucket = Math.floor(Math.log2(queries));
    while (this.#batchSizeHistogram.length <= bucket) this.#batchSizeHistogram.push(0);
    this.#batchSizeHistogram[bucket]!++;
    if (certificate === null) return;
    this.#fullScans += certificate.fullScans;
    for (const rows of certificate.rescored) this.#rescored += rows;
  }

  #sizerOf(queueClass: number): BatchSize {
    const known = this.#sizers.get(queueClass);
    if (known !== undefined) return known;
    const sizer = new BatchSize();
    this.#sizers.set(queueClass, sizer);
    return sizer;
  }

  #waitingByClass(): Map<number, number> {
    const waiting = new Map<number, number>();
    for (const { queueClass, remaining } of this.#waiting) {
      waiting.set(queueClass, (waiting.get(queueClass) ?? 0) + remaining);
    }
    return waiting;
  }
}

/** The queue class of a search for k hits, named by the largest k in it. */
function classOf(k: number): number {
  let largest = SMALLEST_CLASS;
  while (largest < k) largest *= 4;
  return largest;
}

/** The vectors of a batch, row-major. A single slice is not copied. */
function vectorsOf(slices: readonly SearchSlice[], count: number, dimension: number): Float32Array {
  if (slices.length === 1) return slices[0]!.vectors(dimension);
  const vectors = new Float32Array(count * dimension);
  let at = 0;
  for (const slice of slices) {
    vectors.set(slice.vectors(dimension), at * dimension);
    at += slice.count;
  }
  return vectors;
}
