import type { StoredValue } from '../../engine/filter/column.ts';
import type { Bm25Parameters } from '../../engine/lexical/bm25.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { StageTimings } from '../timings.ts';
import type { Hit, Perturbed } from './query-outcome.ts';
import type { CallOptions, RowScope } from './retrieve-call.ts';

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

/** A search by a query tree over the fields of the inverted indexes. */
export interface TreeCall extends RowScope, CallOptions {
  readonly query: LexicalQuery;
  readonly parameters: Bm25Parameters;
  /** Hits to skip, and hits to return after them; both at least 0. */
  readonly from: number;
  readonly size: number;
  /** Counts the matching passages exactly up to this number; 0 does not count them. */
  readonly count: number;
  /** Passages with a lower score do not match. Default: none. */
  readonly minScore?: number;
  /**
   * The order of the hits, the first criterion first. More than a million matches reject the call with INVALID_REQUEST, as
   * does a column that the index does not have. Default: by score, best first, equal scores by row.
   */
  readonly order?: readonly TreeOrder[];
  /** With `order`: only hits after these values, one for each criterion. Default: all. */
  readonly after?: readonly OrderValue[];
  /** With `order`: whether scores are computed although no criterion needs them. Else they are arbitrary. Default: false. */
  readonly scored?: boolean;
  /**
   * Stands for `query` in the cache and in single flight: calls with the same key must have the same query while the index has the same
   * rows. Default: the call is computed in any case.
   */
  readonly key?: string;
  /** What the search asks for, as the record has it. Perturbation draws by it; a call without it is not perturbed. */
  readonly text?: string;
}

export interface TreeHit extends Hit {
  /** With `order`: the values of its criteria. */
  readonly orderValues?: readonly OrderValue[];
}

export interface TreeResult {
  /** Best first, or in the order of the call. */
  readonly hits: readonly TreeHit[];
  /** Score of the best match, also if it was skipped; null without a match. Arbitrary where scores are. */
  readonly best: number | null;
  /** Matching passages: exact up to `count`, else `count + 1`. */
  readonly total: number;
  /** How the server changed the hits on purpose. Absent if it did not. */
  readonly perturbed?: Perturbed;
  readonly timings: StageTimings;
}

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
