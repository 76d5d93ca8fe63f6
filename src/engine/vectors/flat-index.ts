import { cancelled } from '../../base/abort.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Metric } from '../metric.ts';
import type { Kernel } from '../native/kernel.ts';
import { cudaLibrary, type NativeIndex } from '../native/search-functions.ts';
import type { IndexSource } from './index-source.ts';
import { checkFilter, checkSearchRequest } from './search-checks.ts';
import {
  NO_SEARCH_LOAD,
  type SearchGpu,
  type SearchRequest,
  type SearchResult,
  type VectorIndex,
} from './vector-index.ts';

/**
 * Exact search by the native engine. The prefilter, if a shard has one, and the int8 codes select the few rows that need an
 * exact score, and prove that no other row belongs in the top-k (docs/certificate.md). Shards without codes are scanned row
 * by row, with the same result.
 */
export class FlatIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: Metric;
  readonly residentBytes: number;
  readonly touchedBytes: number;
  readonly mappedBytes: number;
  /** Shards whose codes an earlier version made, so that their prefilter was compared with a sample of them. */
  readonly sampledPrefilters: number;
  readonly load = NO_SEARCH_LOAD;
  readonly #kernel: Kernel;
  readonly #index: NativeIndex;
  readonly #calls = new RunningCalls('The index is closed.');
  #gpu: { -readonly [fact in keyof SearchGpu]: SearchGpu[fact] } | undefined;
  #onWarning: (warning: string) => void = () => undefined;

  private constructor(source: IndexSource, kernel: Kernel, index: NativeIndex, gpu: SearchGpu | undefined) {
    this.dimension = source.dimension;
    this.rows = source.rows;
    this.metric = source.metric;
    this.#kernel = kernel;
    this.#index = index;
    this.#gpu = gpu && { ...gpu };
    const { residentBytes, touchedBytes, mappedBytes, sampledPrefilters } = kernel.indexFacts(index);
    this.residentBytes = residentBytes;
    this.touchedBytes = touchedBytes;
    this.mappedBytes = mappedBytes;
    this.sampledPrefilters = sampledPrefilters;
  }

  /**
   * `failedGpu`: the GPU that was to search the index, if it failed before.
   *
   * @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file.
   */
  static async open(source: IndexSource, kernel: Kernel, failedGpu?: SearchGpu): Promise<FlatIndex> {
    const { metric, dimension, liveRows } = source;
    const shards = source.shards.map(({ rows, segments, codes, prefilter }) => ({
      rows,
      segments,
      dtype: segments[0]?.dtype ?? 'float32',
      codes,
      prefilter,
    }));
    const index = await kernel.openIndex({ metric, dimension, shards, liveRows: liveRows?.bytes });
    return new FlatIndex(source, kernel, index, failedGpu);
  }

  /**
   * Copies the codes to an NVIDIA GPU, where the first pass of all searches then runs. Once, before the first search. If the GPU fails
   * later, searches run on the CPU from then on, and `onWarning` is called once.
   *
   * @throws TrawlError DEVICE_UNAVAILABLE, CANCELLED.
   */
  async upload(device: number, onWarning: (warning: string) => void, signal?: AbortSignal): Promise<void> {
    const { name, cuda, bytes } = await this.#calls.run(() =>
      this.#kernel.uploadIndex(this.#index, device, cudaLibrary(), signal),
    );
    this.#gpu = { name, cuda, bytes, failed: false };
    this.#onWarning = onWarning;
  }

  get gpu(): SearchGpu | undefined {
    return this.#gpu;
  }

  search(request: SearchRequest): Promise<SearchResult> {
    return this.#calls.run(() => this.#search(request));
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#kernel.closeIndex(this.#index));
  }

  async #search(request: SearchRequest): Promise<SearchResult> {
    checkSearchRequest(request, this.dimension);
    checkFilter(request, this.rows);
    const { queries, count, k, signal } = request;
    const filter = request.filter?.bytes;
    const isa = this.#kernel.namedIsa;
    const found = await this.#kernel.search(this.#index, { queries, count, k, isa, filter }, signal);
    if (found.gpuFailure !== '') this.#warnOfGpu(found.gpuFailure);
    // The abort may have come after the engine finished.
    if (signal?.aborted === true) throw cancelled();
    return {
      counts: found.counts,
      rows: found.rows,
      scores: found.scores,
      exact: true,
      certificate: { rescored: found.rescored, fullScans: found.fullScans },
      waitedMs: 0,
      ...(found.overflows !== undefined && { overflows: overflowsOf(found.overflows) }),
    };
  }

  #warnOfGpu(failure: string): void {
    if (this.#gpu === undefined || this.#gpu.failed) return;
    this.#gpu.failed = true;
    this.#onWarning(
      `The GPU failed (${failure}). Searches run on the CPU from now on; restart the server to use the GPU again.`,
    );
  }
}

function overflowsOf(rows: Float64Array): ReadonlyMap<number, number> {
  return new Map([...rows.entries()].filter(([, row]) => row >= 0));
}
