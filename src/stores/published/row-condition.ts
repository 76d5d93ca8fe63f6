import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { MAX_BITMAP_ROWS, MAX_NAMED_ROWS, type RowCondition } from './candidate-source.ts';

interface AllowedRows {
  /** The rows of [first, end) are searched. */
  readonly first: number;
  readonly end: number;
  /** Whether these are all rows of the index. */
  readonly isWhole: boolean;
  readonly allowed: RowBitmap;
  /** Live rows, and allowed rows, of [first, end). */
  readonly liveCount: number;
  readonly allowedCount: number;
  readonly live: RowBitmap;
}

/**
 * How a store is asked for the allowed rows: by name where few of them are allowed or few are not, or as a set; undefined where
 * neither is possible.
 */
export function allowedCondition(
  { first, end, isWhole, allowed, liveCount, allowedCount, live }: AllowedRows,
  takesBitmaps: boolean,
): RowCondition | undefined {
  if (allowedCount <= MAX_NAMED_ROWS) return { type: 'in', rows: rowsOf({ first, end }, allowed) };
  if (takesBitmaps && end - first <= MAX_BITMAP_ROWS) return { type: 'bitmap', first, end, set: allowed };
  if (!isWhole || liveCount - allowedCount > MAX_NAMED_ROWS) return undefined;
  return { type: 'not-in', rows: rowsOf({ first, end }, live).filter((row) => !allowed.has(row)) };
}

/** The rows of [first, end) in a set. */
export function rowsOf({ first, end }: { readonly first: number; readonly end: number }, rows: RowBitmap): number[] {
  const found: number[] = [];
  for (let row = rows.next(first); row !== undefined && row < end; row = rows.next(row + 1)) found.push(row);
  return found;
}
