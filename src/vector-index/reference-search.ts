import { TrawlError } from '../errors.ts';
import type { Metric } from '../metric.ts';
import type { RowBitmap } from './row-bitmap.ts';
import { scoreFunction } from './score.ts';
import { TopK } from './top-k.ts';

export interface ReferenceInput {
  /** Row-major, `rowCount` × `dimension`. */
  readonly rows: Float32Array;
  readonly rowCount: number;
  readonly dimension: number;
  readonly metric: Metric;
  /** Row-major, `queryCount` × `dimension`. */
  readonly queries: Float32Array;
  readonly queryCount: number;
  /** Number of the first of `rows` within the index, added to every row number. */
  readonly firstRow?: number;
  /** By row number within the index. */
  readonly filter?: RowBitmap | undefined;
}

/**
 * Offers every row to every query's heap: the plain definition of exact search, which faster engines are tested against.
 * Calling it for one block of rows after another gives the same heaps as one call for all.
 */
export function referenceSearch(input: ReferenceInput, heaps: readonly TopK[]): void {
  const { rows, rowCount, dimension, queries, queryCount, filter, firstRow = 0 } = input;
  const score = scoreFunction(input.metric, dimension);
  for (let i = 0; i < rowCount; i++) {
    const row = firstRow + i;
    if (filter !== undefined && !filter.has(row)) continue;
    for (let q = 0; q < queryCount; q++) {
      const value = score(queries, q * dimension, rows, i * dimension);
      // Finite float32 never give another score, so the row holds the fault (queries are checked before).
      if (!Number.isFinite(value)) throw nonFiniteRow(rows.subarray(i * dimension, (i + 1) * dimension), row);
      heaps[q]!.offer(row, value);
    }
  }
}

function nonFiniteRow(values: Float32Array, row: number): TrawlError {
  const column = values.findIndex((value) => !Number.isFinite(value));
  return new TrawlError(
    'NON_FINITE_VECTOR',
    `Row ${row} holds ${values[column]} in column ${column}; vectors must be finite. Build the index again.`,
    { details: { row, column } },
  );
}

/** The whole answer for rows in memory: row numbers and float64 scores per query, best first. */
export function referenceTopK(input: ReferenceInput, k: number): { rows: number[]; scores: number[] }[] {
  const heaps = Array.from({ length: input.queryCount }, () => new TopK(k));
  referenceSearch(input, heaps);
  return heaps.map((heap) => heap.sorted());
}
