import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { RowCondition } from './candidate-source.ts';

/** Rows among which a query is searched: [first, end), with their numbers of live and of allowed rows. */
export interface RowPart {
  readonly first: number;
  readonly end: number;
  readonly live: number;
  readonly allowed: number;
}

export function halves(
  { first, end }: RowPart,
  { live, allowed }: { readonly live: RowBitmap; readonly allowed: RowBitmap },
): RowPart[] {
  const middle = Math.floor((first + end) / 2);
  return [
    { first, end: middle, live: live.countIn(first, middle), allowed: allowed.countIn(first, middle) },
    { first: middle, end, live: live.countIn(middle, end), allowed: allowed.countIn(middle, end) },
  ];
}

/** All live rows of a part. @param rows the number of rows in the index. */
export function rangeOf({ first, end }: RowPart, rows: number): RowCondition {
  return first === 0 && end === rows ? { type: 'all' } : { type: 'range', first, end };
}

/** The rows of a part for which the store's expression of a filter holds. */
export function filterOf({ first, end }: RowPart, expression: string): RowCondition {
  return { type: 'filter', expression, first, end };
}
