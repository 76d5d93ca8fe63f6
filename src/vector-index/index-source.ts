import type { Metric } from '../metric.ts';
import type { RowBitmap } from './row-bitmap.ts';
import type { VectorSegment } from './vector-segments.ts';

/** The rows of one shard within an index. */
export interface ShardSource {
  /** Row number of the shard's first row within the index. */
  readonly firstRow: number;
  readonly rows: number;
  readonly segments: readonly VectorSegment[];
  /** Absolute path of the first-pass codes; absent where they were not made. */
  readonly codes?: string;
  /** Absolute path of the screen before the codes; absent where there is none. */
  readonly screen?: string;
}

/** What an engine opens: where the rows of an index lie. Plain data, so that it can cross to a worker thread. */
export interface IndexSource {
  readonly dimension: number;
  readonly metric: Metric;
  readonly rows: number;
  readonly shards: readonly ShardSource[];
  /** Rows that are not tombstones; absent where no row was removed. */
  readonly alive?: RowBitmap;
}
