import type { IndexSource } from '../vectors/index-source.ts';

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

export interface FoundPart {
  readonly counts: Uint32Array<ArrayBuffer>;
  /** Hits of query q from index q × min(k, rows of the worker). */
  readonly rows: Float64Array<ArrayBuffer>;
  readonly scores: Float64Array<ArrayBuffer>;
}
