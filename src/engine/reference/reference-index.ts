import { throwIfCancelled, untilAborted } from '../../base/abort.ts';
import { TrawlError } from '../../base/errors.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import { availableCores } from '../../base/system/cores.ts';
import { CallThread } from '../../base/system/thread-calls.ts';
import { hitArrays, TopK } from '../top-k.ts';
import { checkSearchRequest, withoutOverflows } from '../vectors/search-checks.ts';
import {
  type IndexSource,
  NO_SEARCH_LOAD,
  type SearchRequest,
  type SearchResult,
  type VectorIndex,
} from '../vectors/vector-index.ts';

/** Minimum number of rows per thread. */
const MIN_ROWS_PER_THREAD = 1024;

/** What a thread of the reference index is started with. */
export interface ReferenceWorkerData {
  readonly source: IndexSource;
  /** The worker scans rows [begin, end) of the index. */
  readonly begin: number;
  readonly end: number;
}

export interface PartRequest {
  /** Shared memory: queries, row-major. */
  readonly queries: Float32Array;
  readonly count: number;
  readonly k: number;
  /** Bitmap of the rows that may be returned, as in RowBitmap. The worker excludes deleted rows itself. */
  readonly filter: Uint8Array | undefined;
  /** Shared memory: set to 1 to cancel the search. */
  readonly cancelled: Int32Array;
}

/** Query q has min(k, rows of the worker) places. */
type FoundPart = ReturnType<typeof hitArrays>;

/**
 * Opens an index for exact search in TypeScript: worker threads read the rows in blocks and score every row. Defines the correct result.
 * Slow: about 0.5 G multiply-adds per second and thread.
 *
 * @param options `threads`: number of search threads, from 1. Default: the available cores. A small index gets fewer.
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_TRUNCATED with the file.
 */
export async function openReferenceIndex(
  source: IndexSource,
  { threads: most = availableCores() }: { readonly threads?: number } = {},
): Promise<VectorIndex> {
  if (!Number.isSafeInteger(most) || most < 1) {
    throw new RangeError(`threads is ${most}; it must be a whole number from 1.`);
  }
  const { dimension, rows, metric } = source;
  const calls = new RunningCalls('The index is closed.');
  const count = Math.max(1, Math.min(most, Math.ceil(rows / MIN_ROWS_PER_THREAD)));
  const boundary = (i: number): number => Math.floor((rows * i) / count);
  /** The error of a dead thread, whose rows can no longer be searched. */
  let failure: Error | undefined;
  const onEnded = (error: Error): void => {
    failure ??= error;
  };
  const threads = Array.from({ length: count }, (_, i) => {
    const workerData: ReferenceWorkerData = { source, begin: boundary(i), end: boundary(i + 1) };
    const options = { name: 'trawl-reference', workerData };
    return new CallThread<PartRequest, FoundPart>(new URL('./reference-worker.js', import.meta.url), options, onEnded);
  });

  async function scan({ queries, count, k, filter, signal }: SearchRequest): Promise<FoundPart[]> {
    const cancelled = new Int32Array(new SharedArrayBuffer(4));
    const shared = new Float32Array(new SharedArrayBuffer(queries.byteLength));
    shared.set(queries);
    const request = { queries: shared, count, k, filter: filter?.bytes, cancelled };
    try {
      return await untilAborted(Promise.all(threads.map((thread) => thread.ask(request))), signal);
    } catch (error) {
      // The threads that still scan stop.
      Atomics.store(cancelled, 0, 1);
      throw failure === undefined ? error : threadDied(failure);
    }
  }

  const index: VectorIndex = {
    dimension,
    rows,
    metric,
    residentBytes: 0,
    touchedBytes: 0,
    mappedBytes: 0,
    load: NO_SEARCH_LOAD,
    search: (request) =>
      calls.run(async () => {
        checkSearchRequest(request, { dimension, rows });
        if (failure !== undefined) throw threadDied(failure);
        throwIfCancelled(request.signal);
        return withoutOverflows(mergeParts(request.count === 0 ? [] : await scan(request), request));
      }),
    close: () =>
      calls.close(async () => {
        await Promise.all(threads.map((thread) => thread.close()));
      }),
  };
  try {
    await Promise.all(threads.map((thread) => thread.opened()));
    return index;
  } catch (error) {
    await index.close();
    throw error;
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
function mergeParts(parts: readonly FoundPart[], { count, k }: SearchRequest): SearchResult {
  const queries = Array.from({ length: count }, (_, q) => {
    const best = new TopK(k);
    for (const { counts, rows, scores } of parts) {
      const first = (q * rows.length) / count;
      for (let i = first; i < first + counts[q]!; i++) best.offer(rows[i]!, scores[i]!);
    }
    return best;
  });
  return { ...hitArrays(queries, k), exact: true, certificate: null, waitedMs: 0 };
}
