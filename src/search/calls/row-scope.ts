import type { Filter } from '../../engine/filter/filter.ts';

/**
 * The rows that a call may use. All others are treated as if they were deleted: they are not found, not returned and not counted. The
 * statistics of BM25, such as the number of passages with a term, are those of the whole index in any case.
 */
export interface RowScope {
  /**
   * By the columns of the corpus. A column that the index does not have, or a value of another type, rejects the call with
   * INVALID_REQUEST. Default: all rows.
   */
  readonly filter?: Filter;
  /** Names of views: only rows that are in all of them. A view that the index does not have rejects the call with NOT_FOUND. */
  readonly views?: readonly string[];
}
