import { cancelled } from '../../base/abort.ts';
import { QueueClock } from '../../base/queue-clock.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { placesPerQuery, type SearchRequest, type SearchResult } from '../../engine/vectors/vector-index.ts';

/** Consecutive queries of one search. */
export class SearchSlice {
  readonly search: WaitingSearch;
  readonly first: number;
  readonly count: number;

  constructor(search: WaitingSearch, first: number, count: number) {
    this.search = search;
    this.first = first;
    this.count = count;
  }

  vectors(dimension: number): Float32Array {
    return this.search.queries.subarray(this.first * dimension, (this.first + this.count) * dimension);
  }
}

/** One queued call of `search`: hands out its queries in slices and collects the results of the slices. */
export class WaitingSearch {
  readonly queries: Float32Array;
  readonly k: number;
  readonly queueClass: number;
  readonly filter: RowBitmap | undefined;
  readonly result: Promise<SearchResult>;
  /** When the call was queued, by `performance.now()`. */
  readonly since = performance.now();
  readonly #count: number;
  readonly #counts: Uint32Array;
  readonly #rows: Float64Array;
  readonly #scores: Float64Array;
  readonly #rescored: Float64Array;
  readonly #overflows = new Map<number, number>();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
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
  #settled = false;

  /** `onDropped` is called with the number of unstarted queries when the caller cancels or the search fails. */
  constructor(request: SearchRequest, queueClass: number, onDropped: (queries: number) => void) {
    const { queries, count, k, filter, signal } = request;
    this.queries = queries;
    this.k = k;
    this.queueClass = queueClass;
    this.filter = filter;
    this.#count = count;
    this.#counts = new Uint32Array(count);
    this.#rows = new Float64Array(count * k).fill(-1);
    this.#scores = new Float64Array(count * k);
    this.#rescored = new Float64Array(count);
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#onDropped = onDropped;
    this.#signal = signal;
    this.#onAbort = () => {
      this.fail(cancelled());
      for (const callback of this.#onCancel) callback();
    };
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Queries not yet handed out. */
  get remaining(): number {
    return this.#settled ? 0 : this.#count - this.#next;
  }

  get hasWork(): boolean {
    return this.remaining > 0;
  }

  /** Whether the search has a result or an error, or was cancelled. */
  get isSettled(): boolean {
    return this.#settled;
  }

  canShareBatch(other: WaitingSearch): boolean {
    return this.queueClass === other.queueClass && this.filter === other.filter;
  }

  /** Calls `callback` when the caller cancels. Returns a function that removes the callback. */
  onCancel(callback: () => void): () => void {
    this.#onCancel.add(callback);
    return () => this.#onCancel.delete(callback);
  }

  /** Hands out the next queries, at most `most`. */
  take(most: number): SearchSlice {
    const first = this.#next;
    this.#next = Math.min(this.#count, first + most);
    this.#clock.started(this.#next - first);
    return new SearchSlice(this, first, this.#next - first);
  }

  /** Collects the results of a slice, which start at query `at` of a batch that was searched with the same k or a larger one. */
  accept({ first, count }: SearchSlice, found: SearchResult, at: number): void {
    if (this.#settled) return;
    const { k } = this;
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
    if (this.#finished === this.#count) this.#finish();
  }

  fail(error: unknown): void {
    if (this.#settled) return;
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
      ...(this.#overflows.size > 0 && { overflows: this.#overflows }),
    });
  }

  #settle(): void {
    this.#settled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
