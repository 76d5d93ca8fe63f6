import type { Metric } from '../metric.ts';
import type { RowBitmap } from './row-bitmap.ts';

export interface SearchRequest {
  /** Row-major, `count` × `dimension`. Every value finite, else NON_FINITE_QUERY. */
  readonly queries: Float32Array;
  readonly count: number;
  /** Hits wanted per query, ≥ 1. More than there are rows is allowed: all rows come back. */
  readonly k: number;
  /** Only rows whose bit is set are candidates. Absent: all rows that are not tombstones. */
  readonly filter?: RowBitmap;
  /** Aborting rejects the search with CANCELLED at once; its threads stop when the running block is done. */
  readonly signal?: AbortSignal;
}

export interface SearchResult {
  /** Number of hits of each query: `min(k, candidate rows)`. */
  readonly counts: Uint32Array;
  /**
   * Row numbers, `count` × `k`, best first, −1 past `counts[q]`. Float64 because row numbers exceed 32 bits and are
   * exact up to 2^53.
   */
  readonly rows: Float64Array;
  /**
   * Scores beside `rows`: the float64 sum in index order that defines the ranking (docs/architecture.md, "Exactness").
   * Equal scores are ordered by the lower row. A reply rounds them once to float32.
   */
  readonly scores: Float64Array;
  /** True when the engine proved that no other row belongs in the answer. Exact engines always say true. */
  readonly exact: boolean;
  /** What the proof cost; absent where every row is scored anyway. */
  readonly certificate?: CertificateCost;
  /** Milliseconds in which no batch had any of the queries; absent where nothing ever waits. */
  readonly waitedMs?: number;
}

export interface CertificateCost {
  /** Exact rows read and scored for each query, beside the scan of the codes. */
  readonly rescored: Float64Array;
  /** Queries for which the codes decided too little, so that every row was scored. */
  readonly fullScans: number;
}

/** What an engine has to do and has done. */
export interface SearchLoad {
  /** Queries that no batch has. */
  readonly waitingQueries: number;
  /** Expected milliseconds until those are done; 0 before anything was measured. */
  readonly expectedWaitMs: number;
  /** Queries searched since the start. */
  readonly queries: number;
  /** Queries given up before a batch had them, because their caller went away. */
  readonly droppedQueries: number;
  readonly batches: number;
  /** Batches by their size: element i counts those of 2^i to 2^(i+1) − 1 queries. */
  readonly batchSizes: readonly number[];
  /** Rows scored exactly beside the scans of the codes. */
  readonly rescoredRows: number;
  /** Queries for which the codes decided too little, so that every row was scored. */
  readonly fullScans: number;
}

/**
 * Exact top-k over the rows of one index. Implementations never depend on the company a query came in: the same query
 * gives the same bits in any batch, with any number of threads or shards.
 */
export interface VectorIndex {
  readonly dimension: number;
  /** Rows, tombstones included. */
  readonly rows: number;
  readonly metric: Metric;
  /** Bytes of its files by how they want to be in memory (FlatIndex has the three kinds); absent where nothing is mapped. */
  readonly residentBytes?: number;
  readonly touchedBytes?: number;
  readonly mappedBytes?: number;
  /** Absent where nothing ever waits. */
  readonly load?: SearchLoad;
  search(request: SearchRequest): Promise<SearchResult>;
  /** Waits for running searches, then lets go of files and threads. Safe to call twice. */
  close(): Promise<void>;
}
