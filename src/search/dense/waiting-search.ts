import { cancelled } from '../../base/abort.ts';
import { QueueClock } from '../../base/queue-clock.ts';
import { placesPerQuery, type SearchRequest, type SearchResult } from '../../engine/vectors/vector-index.ts';

/** Consecutive queries of one search. */
export interface SearchSlice {
  readonly search: WaitingSearch;
  readonly first: number;
  readonly count: number;
  /** Row-major, count × dimension. */
  readonly vectors: Float32Array;
}

/** One queued call of `search`: hands out its queries in slices and collects the results of the slices. */
export class WaitingSearch {
  readonly request: SearchRequest;
  readonly queueClass: number;
  readonly result: Promise<SearchResult>;
  /** When the call was queued, by `performance.now()`. */
  readonly since = performance.now();
  readonly #counts: Uint32Array;
  readonly #rows: Float64Array;
  readonly #scores: Float64Array;
  readonly #rescored: Float64Array;
  readonly #overflows = new Map<number, number>();
  readonly #onDropped: (queries: number) => void;
  readonly #onCancel = new Set<() => void>();
  #resolve!: (result: SearchResult) => void;
  #reject!: (error: unknown) => void;
  readonly #clock = new QueueClock();
  #next = 0;
  #finished = 0;
  #exact = true;
  #certified = true;
  #fullScans = 0;
  /** Whether the search has a result or an error, or was cancelled. */
  isSettled = false;

  /** @param onDropped called with the number of unstarted queries when the caller cancels or the search fails. */
  constructor(request: SearchRequest, queueClass: number, onDropped: (queries: number) => void) {
    const { count, k, signal } = request;
    this.request = request;
    this.queueClass = queueClass;
    this.#counts = new Uint32Array(count);
    this.#rows = new Float64Array(count * k).fill(-1);
    this.#scores = new Float64Array(count * k);
    this.#rescored = new Float64Array(count);
    this.#onDropped = onDropped;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => {
    this.fail(cancelled());
    for (const callback of this.#onCancel) callback();
  };

  /** Queries not yet handed out. */
  get remaining(): number {
    return this.isSettled ? 0 : this.request.count - this.#next;
  }

  get hasWork(): boolean {
    return this.remaining > 0;
  }

  /** Calls `callback` when the caller cancels. Returns a function that removes the callback. */
  onCancel(callback: () => void): () => void {
    this.#onCancel.add(callback);
    return () => this.#onCancel.delete(callback);
  }

  /** Hands out the next queries, at most `most`. */
  take(most: number): SearchSlice {
    const { queries, count: all } = this.request;
    const first = this.#next;
    this.#next = Math.min(all, first + most);
    const count = this.#next - first;
    this.#clock.started(count);
    const dimension = queries.length / all;
    return { search: this, first, count, vectors: queries.subarray(first * dimension, this.#next * dimension) };
  }

  /** Collects the results of a slice, which start at query `at` of a batch that was searched with the same k or a larger one. */
  accept({ first, count }: SearchSlice, found: SearchResult, at: number): void {
    if (this.isSettled) return;
    const { k } = this.request;
    const places = placesPerQuery(found);
    for (let q = 0; q < count; q++) {
      const hits = Math.min(k, found.counts[at + q]!);
      const from = (at + q) * places;
      const overflow = found.overflows?.get(at + q);
      if (overflow !== undefined) this.#overflows.set(first + q, overflow);
      this.#counts[first + q] = hits;
      this.#rows.set(found.rows.subarray(from, from + hits), (first + q) * k);
      this.#scores.set(found.scores.subarray(from, from + hits), (first + q) * k);
      this.#rescored[first + q] = found.certificate?.rescored[at + q] ?? 0;
    }
    this.#exact &&= found.exact;
    this.#certified &&= found.certificate !== null;
    // The engine counts full scans per batch, not per search: this is an upper bound for the slice.
    this.#fullScans += Math.min(count, found.certificate?.fullScans ?? 0);
    this.#finished += count;
    this.#clock.finished(count);
    if (this.#finished === this.request.count) this.#finish();
  }

  fail(error: unknown): void {
    if (this.isSettled) return;
    this.#onDropped(this.remaining);
    this.#settle();
    this.#reject(error);
  }

  #finish(): void {
    this.#settle();
    const certificate = { rescored: this.#rescored, fullScans: this.#fullScans };
    this.#resolve({
      counts: this.#counts,
      rows: this.#rows,
      scores: this.#scores,
      exact: this.#exact,
      waitedMs: this.#clock.waitedMs,
      certificate: this.#certified ? certificate : null,
      overflows: this.#overflows.size === 0 ? undefined : this.#overflows,
    });
  }

  #settle(): void {
    this.isSettled = true;
    this.request.signal?.removeEventListener('abort', this.#onAbort);
  }
}
