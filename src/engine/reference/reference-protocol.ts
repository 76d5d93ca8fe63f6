import type { SerializedError } from '../../base/errors.ts';
import type { IndexSource } from '../vectors/index-source.ts';

/** Messages between the reference index and its worker threads. */
export interface ReferenceWorkerData {
  readonly source: IndexSource;
  /** The worker scans rows [begin, end) of the index. */
  readonly begin: number;
  readonly end: number;
}

export type ToReferenceWorker =
  | {
      readonly type: 'search';
      readonly id: number;
      /** Shared memory: queries, row-major. */
      readonly queries: Float32Array;
      readonly count: number;
      readonly k: number;
      /** Bitmap of the rows that may be returned, as in RowBitmap. The worker excludes deleted rows itself. */
      readonly filter: Uint8Array | undefined;
      /** Shared memory: set to 1 to cancel the search. */
      readonly cancelled: Int32Array;
    }
  | { readonly type: 'close' };

export type FromReferenceWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'failed'; readonly id: number | undefined; readonly error: SerializedError }
  | {
      readonly type: 'found';
      readonly id: number;
      readonly counts: Uint32Array<ArrayBuffer>;
      /** Hits of query q from index q × min(k, rows of the worker). */
      readonly rows: Float64Array<ArrayBuffer>;
      readonly scores: Float64Array<ArrayBuffer>;
    };
