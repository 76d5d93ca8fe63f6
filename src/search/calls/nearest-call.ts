import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { StageTimings } from '../timings.ts';
import type { RowScope } from './row-scope.ts';

/** Asks for the rows whose vectors are nearest to a vector. */
export interface NearestCall extends RowScope {
  /** One value per dimension of the index. */
  readonly vector: Float32Array;
  /** Rows, ≥ 1. */
  readonly k: number;
  /** Rows that may be found, if they are in the scope. Default: all. */
  readonly rows?: RowBitmap;
  readonly signal?: AbortSignal;
}

export interface NearestResult {
  /** Best first; fewer than k only if fewer rows may be found. Scores are those of the metric, in float64. */
  readonly nearest: readonly { readonly row: number; readonly score: number }[];
  readonly timings: StageTimings;
}
