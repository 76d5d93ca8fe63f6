import { throwIfCancelled } from '../../base/abort.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Kernel } from '../native/kernel.ts';
import { cudaLibrary } from '../native/search-functions.ts';
import { checkSearchRequest } from './search-checks.ts';
import { type IndexSource, NO_SEARCH_LOAD, type SearchGpu, type VectorIndex } from './vector-index.ts';

/**
 * Exact search by the native engine. The prefilter, if a shard has one, and the int8 codes select the few rows that need an
 * exact score, and prove that no other row belongs in the top-k (docs/certificate.md). Shards without codes are scanned row
 * by row, with the same result.
 */
export interface FlatIndex extends VectorIndex {
  /** Number of shards whose codes an earlier version made: their prefilters were compared with a sample of the codes only. */
  readonly sampledPrefilters: number;
  /**
   * Copies the codes to an NVIDIA GPU, where the first pass of all searches then runs. Once, before the first search. If the GPU fails
   * later, searches run on the CPU from then on, and `onWarning` is called once.
   *
   * @throws TrawlError DEVICE_UNAVAILABLE, CANCELLED.
   */
  upload(device: number, onWarning: (warning: string) => void, signal?: AbortSignal): Promise<void>;
}

/**
 * @param failedGpu the GPU that should have searched the index, but failed before.
 * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file.
 */
export async function openFlatIndex(source: IndexSource, kernel: Kernel, failedGpu?: SearchGpu): Promise<FlatIndex> {
  const { metric, dimension, rows, liveRows } = source;
  const shards = source.shards.map((shard) => ({ ...shard, dtype: shard.segments[0]?.dtype ?? 'float32' }));
  const index = await kernel.openIndex({ metric, dimension, shards, liveRows: liveRows?.bytes });
  const calls = new RunningCalls('The index is closed.');
  let gpu: { -readonly [Fact in keyof SearchGpu]: SearchGpu[Fact] } | undefined = failedGpu;
  let warn: (warning: string) => void = () => undefined;
  return {
    ...kernel.indexFacts(index),
    dimension,
    rows,
    metric,
    load: NO_SEARCH_LOAD,
    get gpu() {
      return gpu;
    },
    async upload(device, onWarning, signal) {
      const uploaded = await calls.run(() => kernel.uploadIndex(index, device, cudaLibrary(), signal));
      gpu = { ...uploaded, failed: false };
      warn = onWarning;
    },
    search: (request) =>
      calls.run(async () => {
        checkSearchRequest(request, { dimension, rows });
        const { queries, count, k, filter, signal } = request;
        const search = { queries, count, k, isa: kernel.namedIsa, filter: filter?.bytes };
        const { gpuFailure, overflows, rescored, fullScans, ...found } = await kernel.search(index, search, signal);
        if (gpuFailure !== '' && gpu?.failed === false) {
          gpu.failed = true;
          warn(
            `The GPU failed (${gpuFailure}). Searches run on the CPU from now on; restart the server to use the GPU again.`,
          );
        }
        // The abort may have come after the engine finished.
        throwIfCancelled(signal);
        return {
          ...found,
          exact: true,
          certificate: { rescored, fullScans },
          waitedMs: 0,
          overflows: overflows && new Map([...overflows.entries()].filter(([, row]) => row >= 0)),
        };
      }),
    close: () => calls.close(() => kernel.closeIndex(index)),
  };
}
