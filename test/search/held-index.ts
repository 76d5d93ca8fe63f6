import { cancelled } from '../../src/base/abort.ts';
import {
  NO_SEARCH_LOAD,
  type SearchRequest,
  type SearchResult,
  type VectorIndex,
} from '../../src/engine/vectors/vector-index.ts';

/** A search of the engine that waits for the test. */
export interface HeldSearch {
  readonly request: SearchRequest;
  /** Lets the inner engine answer it. */
  release(): void;
  fail(error: Error): void;
}

/** An engine that holds each search until the test releases it to the inner engine. Obeys abort signals. */
export class HeldIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: VectorIndex['metric'];
  readonly residentBytes: number;
  readonly touchedBytes: number;
  readonly mappedBytes: number;
  readonly load = NO_SEARCH_LOAD;
  /** Held searches, in order. */
  readonly held: HeldSearch[] = [];
  /** Number of queries of each search so far. */
  readonly batches: number[] = [];
  closed = false;
  readonly #inner: VectorIndex;

  constructor(inner: VectorIndex) {
    this.#inner = inner;
    this.dimension = inner.dimension;
    this.rows = inner.rows;
    this.metric = inner.metric;
    this.residentBytes = inner.residentBytes;
    this.touchedBytes = inner.touchedBytes;
    this.mappedBytes = inner.mappedBytes;
  }

  search(request: SearchRequest): Promise<SearchResult> {
    this.batches.push(request.count);
    return new Promise((resolve, reject) => {
      const held: HeldSearch = {
        request,
        release: () => {
          this.#remove(held);
          resolve(this.#inner.search(request));
        },
        fail: (error) => {
          this.#remove(held);
          reject(error);
        },
      };
      request.signal?.addEventListener('abort', () => held.fail(cancelled()));
      this.held.push(held);
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.#inner.close();
  }

  #remove(held: HeldSearch): void {
    const at = this.held.indexOf(held);
    if (at >= 0) this.held.splice(at, 1);
  }
}

/** Resolves after all pending callbacks that need no timer. */
export function pendingCallbacks(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
