import { cancelled } from '../abort.ts';
import { QueueClock } from '../queue-clock.ts';
import type { RowBitmap } from '../vector-index/row-bitmap.ts';
import type { SearchRequest, SearchResult } from '../vector-index/vector-index.ts';

/** Neighbouring queries of one search. */
export class SearchPiece {
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

/** One call of `search` in the queue: hands out its queries in pieces and puts what comes back in its place. */
export class WaitingSearch {
  readonly queries: Float32Array;
  readonly k: number;
  /** Searches of one kind may share a batch. */
  readonly kind: number;
  readonly filter: RowBitmap | undefined;
  readonly result: Promise<SearchResult>;
  /** By `performance.now()`. */
  readonly since = performance.now();
  readonly #count: number;
  readonly #counts: Uint32Array;
  readonly #rows: Float64Array;
  readonly #scores: Float64Array;
  readonly #rescored: Float64Array;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;
  readonly #onDropped: (queries: number) => void;
  readonly #givenUp = new Set<() => void>();
  #resolve!: (result: SearchResult) => void;
  #reject!: (error: unknown) => void;
  readonly #clock = new QueueClock();
  #next = 0;
  #returned = 0;
  #exact = true;
  #certified = true;
  #fullScans = 0;
  #settled = false;

  /** `onDropped`: told the queries that no batch will have, because the caller went away or the search has failed. */
  constructor(request: SearchRequest, kind: number, onDropped: (queries: number) => void) {
    const { queries, count, k, filter, signal } = request;
    this.queries = queries;
    this.k = k;
    this.kind = kind;
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
      for (const told of this.#givenUp) told();
    };
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Queries that no batch has. */
  get remaining(): number {
    return this.#settled ? 0 : this.#count - this.#next;
  }

  get hasWork(): boolean {
    return this.remaining > 0;
  }

  /** True when it has its answer or its error, or nobody waits for it. */
  get isSettled(): boolean {
    return this.#settled;
  }

  goesWith(other: WaitingSearch): boolean {
    return this.kind === other.kind && this.filter === other.filter;
  }

  /** Calls back if the caller goes away; the function returned forgets that. */
  onGivenUp(callback: () => void): () => void {
    this.#givenUp.add(callback);
    return () => this.#givenUp.delete(callback);
  }

  /** The next queries, at most `most`. */
  take(most: number): SearchPiece {
    const first = this.#next;
    this.#next = Math.min(this.#count, first + most);
    this.#clock.taken(this.#next - first);
    return new SearchPiece(this, first, this.#next - first);
  }

  /** A piece's results, which begin at query `at` of a batch that was searched for `batchK` ≥ k hits. */
  accept({ first, count }: SearchPiece, found: SearchResult, batchK: number, at: number): void {
    if (this.#settled) return;
    const { k } = this;
    for (let q = 0; q < count; q++) {
      const hits = Math.min(k, found.counts[at + q]!);
      const from = (at + q) * batchK;
      this.#counts[first + q] = hits;
      this.#rows.set(found.rows.subarray(from, from + hits), (first + q) * k);
      this.#scores.set(found.scores.subarray(from, from + hits), (first + q) * k);
      this.#rescored[first + q] = found.certificate?.rescored[at + q] ?? 0;
    }
    this.#exact &&= found.exact;
    this.#certified &&= found.certificate !== undefined;
    // Which queries of a batch they were is not known; each search is told of all.
    this.#fullScans += Math.min(count, found.certificate?.fullScans ?? 0);
    this.#returned += count;
    this.#clock.returned(count);
    if (this.#returned === this.#count) this.#finish();
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
      ...(this.#certified ? { certificate } : {}),
    });
  }

  #settle(): void {
    this.#settled = true;
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
