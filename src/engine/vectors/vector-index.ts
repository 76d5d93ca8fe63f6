import type { Metric } from '../metric.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { VectorSegment } from './vector-segments.ts';

/** The rows of one shard within an index. */
export interface ShardSource {
  /** Row number of the shard's first row within the index. */
  readonly firstRow: number;
  readonly rows: number;
  readonly segments: readonly VectorSegment[];
  /** Absolute path of the codes; absent if the shard has none. */
  readonly codes?: string;
  /** Absolute path of the prefilter of these codes; absent if the shard has none. */
  readonly prefilter?: string;
}

/** The files of an index, for an engine to open. Plain data, so that it can be sent to a worker thread. */
export interface IndexSource {
  readonly dimension: number;
  readonly metric: Metric;
  readonly rows: number;
  readonly shards: readonly ShardSource[];
  /** Absent if no rows are deleted. */
  readonly liveRows?: RowBitmap;
}

export interface SearchRequest {
  /** Row-major, `count` × `dimension`. Every value must be finite (NON_FINITE_QUERY). */
  readonly queries: Float32Array;
  readonly count: number;
  /** Hits per query, at least 1. If the index has fewer rows, all are returned. */
  readonly k: number;
  /** The live rows that may be returned; absent: all. Must not change until the search has ended. */
  readonly filter?: RowBitmap;
  /** Aborting rejects the search with CANCELLED; its threads stop after the running block. */
  readonly signal?: AbortSignal;
}

export interface SearchResult {
  /** Hits per query: `min(k, number of rows that may be returned)`. */
  readonly counts: Uint32Array;
  /**
   * Row numbers, best first, −1 past `counts[q]`. Each query has the same number of places, at most k (`placesPerQuery`).
   * Float64 because row numbers exceed 32 bits and are exact up to 2^53.
   */
  readonly rows: Float64Array;
  /**
   * The scores of `rows`, which define the ranking (docs/architecture.md, "Scores"). Larger is nearer; equal scores are ordered
   * by the lower row. Responses round scores once, to float32.
   */
  readonly scores: Float64Array;
  /** Whether the engine proved that no other row belongs in the top-k. False only for an approximate index in Milvus. */
  readonly exact: boolean;
  /** Cost of the proof; null if the engine scores every row. */
  readonly certificate: CertificateCost | null;
  /** Time the queries spent queued, in milliseconds; 0 if the engine has no queue. */
  readonly waitedMs: number;
  /**
   * Queries that have no hits because a score does not fit float32, which responses use, and the row with that score. Absent: there is
   * none. `checkScoresFit` makes an error of it.
   */
  readonly overflows?: ReadonlyMap<number, number>;
}

/** How many places each query has in the arrays of a result. */
export function placesPerQuery({ counts, rows }: Pick<SearchResult, 'counts' | 'rows'>): number {
  return counts.length === 0 ? 0 : rows.length / counts.length;
}

export interface CertificateCost {
  /** Exact rows read and scored for each query. */
  readonly rescored: Float64Array;
  /** Queries for which the codes excluded too few rows, so that every row was scored. */
  readonly fullScans: number;
}

/** The GPU on which the first pass of searches runs. An index has one such object. */
export interface SearchGpu {
  readonly name: string;
  /** The driver's version of CUDA, such as 13.0. */
  readonly cuda: string;
  /** Bytes of its memory that the index takes; 0 if it failed before the index was opened. */
  readonly bytes: number;
  /** Becomes true if it fails: searches then run on the CPU. True from the start if it failed with another index of this process. */
  readonly failed: boolean;
}

/** An engine's queue and counters. */
export interface SearchLoad {
  /** Queued queries. */
  readonly waitingQueries: number;
  /** Estimated time until the queued queries are done, in milliseconds; 0 before the first measurement. */
  readonly expectedWaitMs: number;
  /** Queries searched since the start. */
  readonly queries: number;
  /** Queries that left the queue because their caller disconnected. */
  readonly droppedQueries: number;
  readonly batches: number;
  /** Batches by their size: element i counts batches of 2^i to 2^(i+1) − 1 queries. */
  readonly batchSizes: readonly number[];
  /** Exact rows read and scored. */
  readonly rescoredRows: number;
  /** Queries for which the codes excluded too few rows, so that every row was scored. */
  readonly fullScans: number;
}

/** The load of an engine that has no queue and counts nothing. */
export const NO_SEARCH_LOAD: SearchLoad = Object.freeze({
  waitingQueries: 0,
  expectedWaitMs: 0,
  queries: 0,
  droppedQueries: 0,
  batches: 0,
  batchSizes: [],
  rescoredRows: 0,
  fullScans: 0,
});

/**
 * Exact top-k search over the rows of an index. The scores of a query are the same, bit for bit, in any batch and with any
 * number of threads and shards.
 */
export interface VectorIndex {
  readonly dimension: number;
  /** Rows, including deleted ones. */
  readonly rows: number;
  readonly metric: Metric;
  /** Bytes of mapped files that every search reads: prefilters, and codes of shards without one. 0 if nothing is mapped. */
  readonly residentBytes: number;
  /** Bytes of the codes behind prefilters: a search reads about one row in a thousand. */
  readonly touchedBytes: number;
  /** Bytes of the exact rows: a search reads a few dozen rows. */
  readonly mappedBytes: number;
  readonly load: SearchLoad;
  /** Undefined or absent: searches run on the CPU. */
  readonly gpu?: SearchGpu;
  search(request: SearchRequest): Promise<SearchResult>;
  /** Waits for running searches, then closes files and threads. May be called twice. */
  close(): Promise<void>;
}
