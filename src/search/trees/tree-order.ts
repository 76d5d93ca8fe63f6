import type { StoredValue } from '../../engine/filter/bind-filter.ts';

/** A criterion by which the hits of a query tree are ordered. */
export interface TreeOrder {
  /** `row`: the number of the row. `nothing`: all rows are equal, as if none had a value. */
  readonly by: 'score' | 'row' | 'nothing' | { readonly column: string };
  readonly descending: boolean;
  /** Which value of a row with several counts. Default: the least if ascending, else the most. */
  readonly which?: 'least' | 'most';
  /** Where rows without a value are, or the value that stands for theirs. Default: `last`. */
  readonly missing?: 'first' | 'last' | { readonly value: StoredValue };
}

/** What a hit is ordered by; null in a row without a value. A date is in milliseconds since 1970, true and false are 1 and 0. */
export type OrderValue = StoredValue | null;

/** Negative if hits with the values `a` come before those with `b`. Equal hits are ordered by their rows. */
export function compareOrder(order: readonly TreeOrder[], a: readonly OrderValue[], b: readonly OrderValue[]): number {
  for (const [i, { descending, missing }] of order.entries()) {
    const [one, other] = [a[i] ?? null, b[i] ?? null];
    if (one === null || other === null) {
      if (one === other) continue;
      return (one === null) === (missing === 'first') ? -1 : 1;
    }
    const compared = compareValues(one, other);
    if (compared !== 0) return descending ? -compared : compared;
  }
  return 0;
}

/** Texts are compared by their UTF-8. */
function compareValues(a: StoredValue, b: StoredValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return a === b ? 0 : Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}
