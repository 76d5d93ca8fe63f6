import { cancelled } from '../../src/abort.ts';
import type { SearchRequest, SearchResult, VectorIndex } from '../../src/vector-index/vector-index.ts';

/** One search that the engine has been asked for and that waits for the test. */
export interface HeldSearch {
  readonly request: SearchRequest;
  /** Lets the engine answer it. */
  release(): void;
  fail(error: Error): void;
}

/** An engine that answers when it is told to, by the engine behind it, and obeys its signals. */
export class HeldIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: VectorIndex['metric'];
  /** Asked for and not answered, in order. */
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

/** Lets everything happen that needs no timer. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
