import { Worker } from 'node:worker_threads';
import { cancelled as cancelledError, throwIfCancelled } from '../../base/abort.ts';
import { bug, deserializeError, TrawlError } from '../../base/errors.ts';
import { availableCores } from '../../base/system/cores.ts';
import type { Metric } from '../metric.ts';
import { TopK } from '../top-k.ts';
import type { IndexSource } from '../vectors/index-source.ts';
import { checkFilter, checkSearchRequest, withoutOverflows } from '../vectors/search-checks.ts';
import { NO_SEARCH_LOAD, type SearchRequest, type SearchResult, type VectorIndex } from '../vectors/vector-index.ts';
import { SegmentReader } from '../vectors/vector-segments.ts';
import type { FromReferenceWorker, ReferenceWorkerData, ToReferenceWorker } from './reference-protocol.ts';

/** Minimum number of rows per thread. */
const MIN_ROWS_PER_THREAD = 1024;

type Found = Extract<FromReferenceWorker, { type: 'found' }>;

interface PendingSearch {
  readonly parts: Found[];
  readonly cancelled: Int32Array;
  missing: number;
  resolve(parts: Found[]): void;
  reject(error: Error): void;
}

interface SearchThread {
  readonly worker: Worker;
  readonly exited: Promise<void>;
}

export interface ReferenceIndexOptions {
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
  readonly #workers: SearchThread[] = [];
  readonly #pending = new Map<number, PendingSearch>();
  #nextId = 0;
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
    // Check the files in this thread, because errors of a starting worker lose their code.
    for (const shard of source.shards) new SegmentReader(shard.segments, source.dimension).close();
    const index = new ReferenceIndex(source);
    const threads = Math.max(1, Math.min(cores, Math.ceil(source.rows / MIN_ROWS_PER_THREAD)));
    const starting: Promise<void>[] = [];
    for (let i = 0; i < threads; i++) {
      const begin = Math.floor((source.rows * i) / threads);
      const end = Math.floor((source.rows * (i + 1)) / threads);
      starting.push(index.#startWorker({ source, begin, end }));
    }
    const failed = (await Promise.allSettled(starting)).find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) {
      await index.close();
      throw failed.reason;
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
    await Promise.all(
      this.#workers.map(({ worker, exited }) => {
        worker.ref();
        this.#send(worker, { type: 'close' });
        return exited;
      }),
    );
  }

  #startWorker(data: ReferenceWorkerData): Promise<void> {
    const worker = new Worker(new URL('./reference-worker.js', import.meta.url), { workerData: data });
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    return new Promise((resolve, reject) => {
      const onDeath = (error: Error): void => {
        reject(error);
        this.#fail(error);
      };
      worker.once('message', () => {
        worker.unref();
        this.#workers.push({ worker, exited });
        worker.on('message', (message: FromReferenceWorker) => this.#receive(message));
        resolve();
      });
      worker.once('error', onDeath);
      worker.once('exit', (code) => {
        if (code !== 0 || this.#closing === undefined) onDeath(bug(`a search thread ended with ${code}`));
      });
    });
  }

  async #scan(request: SearchRequest): Promise<Found[]> {
    const id = this.#nextId++;
    const cancelled = new Int32Array(new SharedArrayBuffer(4));
    const queries = new Float32Array(new SharedArrayBuffer(request.queries.byteLength));
    queries.set(request.queries);
    const onAbort = (): void => {
      Atomics.store(cancelled, 0, 1);
      this.#pending.get(id)?.reject(cancelledError());
    };
    request.signal?.addEventListener('abort', onAbort);
    for (const { worker } of this.#workers) worker.ref();
    try {
      return await new Promise<Found[]>((resolve, reject) => {
        this.#pending.set(id, { parts: [], cancelled, missing: this.#workers.length, resolve, reject });
        const filter = request.filter?.bytes;
        for (const { worker } of this.#workers) {
          this.#send(worker, { type: 'search', id, queries, count: request.count, k: request.k, filter, cancelled });
        }
      });
    } finally {
      this.#pending.delete(id);
      request.signal?.removeEventListener('abort', onAbort);
      // While closing, the threads keep the process alive until they end.
      if (this.#pending.size === 0 && this.#closing === undefined) {
        for (const { worker } of this.#workers) worker.unref();
      }
    }
  }

  #send(worker: Worker, message: ToReferenceWorker): void {
    worker.postMessage(message);
  }

  #receive(message: FromReferenceWorker): void {
    if (message.type === 'ready') return;
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id);
    if (pending === undefined) return;
    if (message.type === 'failed') {
      Atomics.store(pending.cancelled, 0, 1);
      pending.reject(deserializeError(message.error));
      return;
    }
    pending.parts.push(message);
    pending.missing--;
    if (pending.missing === 0) pending.resolve(pending.parts);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const pending of this.#pending.values()) pending.reject(threadDied(error));
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
function mergeParts(parts: readonly Found[], count: number, k: number): SearchResult {
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
