import { cancelled } from '../abort.ts';
import { TrawlError } from '../errors.ts';
import type { Metric } from '../metric.ts';
import type { IndexSource } from './index-source.ts';
import type { Kernel, NativeIndex } from './kernel.ts';
import { intersect, type RowBitmap } from './row-bitmap.ts';
import { checkSearchRequest } from './search-checks.ts';
import type { SearchRequest, SearchResult, VectorIndex } from './vector-index.ts';

/**
 * Exact search by the native engine: int8 codes decide, with a proof for each query, which few rows have to be scored.
 * Where a shard has a screen, that decides first, from fewer bytes still. docs/certificate.md has the proof. Shards without codes are scanned row by row, with the same result.
 */
export class FlatIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: Metric;
  /** Bytes that want to stay in memory: the screens, and the codes of shards that have none. */
  readonly residentBytes: number;
  /** Bytes of codes behind a screen, of which about one row in a thousand is read. */
  readonly touchedBytes: number;
  /** Bytes of exact rows that are mapped and read a few dozen rows at a time. */
  readonly mappedBytes: number;
  readonly #kernel: Kernel;
  readonly #index: NativeIndex;
  readonly #alive: RowBitmap | undefined;
  readonly #running = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(source: IndexSource, kernel: Kernel, index: NativeIndex) {
    this.dimension = source.dimension;
    this.rows = source.rows;
    this.metric = source.metric;
    this.#alive = source.alive;
    this.#kernel = kernel;
    this.#index = index;
    const { residentBytes, touchedBytes, mappedBytes } = kernel.indexFacts(index);
    this.residentBytes = residentBytes;
    this.touchedBytes = touchedBytes;
    this.mappedBytes = mappedBytes;
  }

  /** @throws TrawlError INDEX_FILE_MISSING or INDEX_FILE_FOREIGN, naming the file. */
  static open(source: IndexSource, kernel: Kernel): FlatIndex {
    const { metric, dimension } = source;
    const shards = source.shards.map(({ rows, segments, codes, screen }) => ({
      rows,
      segments,
      dtype: segments[0]?.dtype ?? 'float32',
      codes,
      screen,
    }));
    return new FlatIndex(source, kernel, kernel.openIndex({ metric, dimension, shards }));
  }

  search(request: SearchRequest): Promise<SearchResult> {
    const running = this.#search(request);
    const settled = running.then(
      () => undefined,
      () => undefined,
    );
    this.#running.add(settled);
    void settled.then(() => this.#running.delete(settled));
    return running;
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#running).then(() => this.#kernel.closeIndex(this.#index));
    return this.#closing;
  }

  async #search(request: SearchRequest): Promise<SearchResult> {
    checkSearchRequest(request, this.dimension);
    if (this.#closing !== undefined) throw new TrawlError('NOT_READY', 'The index is closed.');
    const { queries, count, k, signal } = request;
    const filter = intersect(this.#alive, request.filter, this.rows);
    const found = await this.#kernel.search(this.#index, { queries, count, k, filter }, signal);
    // An abort that came too late for the engine is still an abort for the caller.
    if (signal?.aborted === true) throw cancelled();
    return {
      counts: found.counts,
      rows: found.rows,
      scores: found.scores,
      exact: true,
      certificate: { rescored: found.rescored, fullScans: found.fullScans },
    };
  }
}
