import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { availableCores } from '../../base/system/cores.ts';
import { CallThread } from '../../base/system/thread-calls.ts';
import type { Metric } from '../metric.ts';
import { TopK } from '../top-k.ts';
import type { IndexSource } from '../vectors/index-source.ts';
import { checkFilter, checkSearchRequest, withoutOverflows } from '../vectors/search-checks.ts';
import { NO_SEARCH_LOAD, type SearchRequest, type SearchResult, type VectorIndex } from '../vectors/vector-index.ts';
import type { FoundPart, PartRequest, ReferenceWorkerData } from './reference-protocol.ts';

/** Minimum number of rows per thread. */
const MIN_ROWS_PER_THREAD = 1024;

interface ReferenceIndexOptions {
  /** Number of search threads, from 1. Default: the available cores. A small index gets fewer. */
  readonly threads?: number;
}

/**
 * Exact search in TypeScript: worker threads read the rows in blocks and score every row. Defines the correct result. Slow:
 * about 0.5 G multiply-adds per second and thread.
 */
export class ReferenceIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: Metric;
  readonly residentBytes = 0;
  readonly touchedBytes = 0;
  readonly mappedBytes = 0;
  readonly load = NO_SEARCH_LOAD;
  readonly #threads: CallThread<PartRequest, FoundPart>[] = [];
  #closing: Promise<void> | undefined;
  /** The error of a dead thread, whose rows can no longer be searched. */
  #failure: Error | undefined;

  private constructor(source: IndexSource) {
    this.dimension = source.dimension;
    this.rows = source.rows;
    this.metric = source.metric;
  }

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_TRUNCATED with the file. */
  static async open(source: IndexSource, options: ReferenceIndexOptions = {}): Promise<ReferenceIndex> {
    const cores = options.threads ?? availableCores();
    if (!Number.isSafeInteger(cores) || cores < 1) {
      throw new RangeError(`threads is ${cores}; it must be a whole number from 1.`);
    }
    const index = new ReferenceIndex(source);
    const threads = Math.max(1, Math.min(cores, Math.ceil(source.rows / MIN_ROWS_PER_THREAD)));
    for (let i = 0; i < threads; i++) {
      const begin = Math.floor((source.rows * i) / threads);
      const end = Math.floor((source.rows * (i + 1)) / threads);
      index.#startThread({ source, begin, end });
    }
    try {
      await Promise.all(index.#threads.map((thread) => thread.opened()));
    } catch (error) {
      await index.close();
      throw error;
    }
    return index;
  }

  async search(request: SearchRequest): Promise<SearchResult> {
    checkSearchRequest(request, this.dimension);
    checkFilter(request, this.rows);
    if (this.#closing !== undefined) throw new TrawlError('NOT_READY', 'The index is closed.');
    if (this.#failure !== undefined) throw threadDied(this.#failure);
    throwIfCancelled(request.signal);
    const k = request.k;
    const parts = request.count === 0 ? [] : await this.#scan(request);
    return withoutOverflows(mergeParts(parts, request.count, k));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  #startThread(workerData: ReferenceWorkerData): void {
    const options = { name: 'trawl-reference', workerData };
    const thread = new CallThread<PartRequest, FoundPart>(
      new URL('./reference-worker.js', import.meta.url),
      options,
      (failure) => {
        if (this.#closing === undefined) this.#failure ??= failure;
      },
    );
    this.#threads.push(thread);
  }

  async #scan({ queries, count, k, filter, signal }: SearchRequest): Promise<FoundPart[]> {
    const cancelled = new Int32Array(new SharedArrayBuffer(4));
    const shared = new Float32Array(new SharedArrayBuffer(queries.byteLength));
    shared.set(queries);
    const request = { queries: shared, count, k, filter: filter?.bytes, cancelled };
    try {
      return await untilAborted(Promise.all(this.#threads.map((thread) => thread.ask(request))), signal);
    } catch (error) {
      // The threads that still scan stop.
      Atomics.store(cancelled, 0, 1);
      throw this.#failure === undefined ? error : threadDied(this.#failure);
    }
  }
}

function threadDied(cause: Error): TrawlError {
  return new TrawlError(
    'INTERNAL',
    `A search thread has died: ${cause.message} Reload the index (SIGHUP, or its reload route) or restart the server.`,
    { cause },
  );
}

/** Merges the hits of all threads to the best k. */
function mergeParts(parts: readonly FoundPart[], count: number, k: number): SearchResult {
  const counts = new Uint32Array(count);
  const rows = new Float64Array(count * k).fill(-1);
  const scores = new Float64Array(count * k);
  for (let q = 0; q < count; q++) {
    const heap = new TopK(k);
    for (const part of parts) {
      const stride = part.rows.length / count;
      for (let i = q * stride; i < q * stride + part.counts[q]!; i++) heap.offer(part.rows[i]!, part.scores[i]!);
    }
    const best = heap.sorted();
    counts[q] = best.rows.length;
    rows.set(best.rows, q * k);
    scores.set(best.scores, q * k);
  }
  return { counts, rows, scores, exact: true, certificate: null, waitedMs: 0 };
}
