import { TrawlError } from '../../base/errors.ts';
import type { Metric } from '../metric.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { TopK } from '../top-k.ts';
import { firstNonFinite } from '../typed-arrays.ts';
import { scoreFunction } from '../vectors/score.ts';

export interface ReferenceInput {
  /** Row-major, `rowCount` × `dimension`. */
  readonly rows: Float32Array;
  readonly rowCount: number;
  readonly dimension: number;
  readonly metric: Metric;
  /** Row-major, `queryCount` × `dimension`. */
  readonly queries: Float32Array;
  readonly queryCount: number;
  /** Row number of the first of `rows` in the index. Default 0. */
  readonly firstRow?: number;
  /** By row number within the index. */
  readonly filter?: RowBitmap;
}

/**
 * Offers every row to the `TopK` of every query. Defines exact search: other engines are tested against it. Several calls with
 * blocks of rows give the same result as one call with all rows.
 */
export function referenceSearch(input: ReferenceInput, best: readonly TopK[]): void {
  const { rows, rowCount, dimension, queries, queryCount, filter, firstRow = 0 } = input;
  const score = scoreFunction(input.metric, dimension);
  for (let i = 0; i < rowCount; i++) {
    const row = firstRow + i;
    if (filter !== undefined && !filter.has(row)) continue;
    for (let q = 0; q < queryCount; q++) {
      const value = score(queries, q * dimension, rows, i * dimension);
      // Finite float32 values always give a finite score, and the query is finite, so the row is not.
      if (!Number.isFinite(value)) throw nonFiniteRow(rows.subarray(i * dimension, (i + 1) * dimension), row);
      best[q]!.offer(row, value);
    }
  }
}

function nonFiniteRow(values: Float32Array, row: number): TrawlError {
  const column = firstNonFinite(values);
  return new TrawlError(
    'NON_FINITE_VECTOR',
    `Row ${row} has ${values[column]} in column ${column}; vectors must be finite. Build the index again.`,
    { details: { row, column } },
  );
}
