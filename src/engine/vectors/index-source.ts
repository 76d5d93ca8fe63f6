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
