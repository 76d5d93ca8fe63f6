import { plantHits } from './planted-hits.ts';
import { trialRows } from './trial-rows.ts';

/** What is to be searched. */
export interface TriedIndex {
  readonly dimension: number;
  /** Rows of the whole index. The more there are, the smaller is the share of them that comes near the best hits. */
  readonly rows: number;
}

/** Values of all trial rows together: 65,536 rows of 768. */
const TRIAL_VALUES = 2 ** 16 * 768;
/**
 * Rows of the short search. A search of a shard first scores some thousand of its rows by the codes, whatever its size (`sample_rows` in
 * native/include/trawl/search.hpp). With four times as many rows or more, both searches do so, and the difference between them has none.
 */
export const SHORT_ROWS = 20_480;
/** Rows of the long search, as multiples of the short one. */
const LONG = { min: 2, max: 8 } as const;
/** Passages that a search of the index returns. */
const RESULTS = 10;

/**
 * The rows of the long search, of which the first SHORT_ROWS are those of the short one, the queries, and the share of the rows of the
 * index that a search returns. If that is less than one of the short search's rows, each query has a planted hit among these.
 */
export function trialVectors(
  { dimension, rows: searchedRows }: TriedIndex,
  queryCount: number,
): {
  readonly rows: Float32Array;
  readonly queries: Float32Array;
  readonly share: number;
} {
  const fit = Math.floor(TRIAL_VALUES / dimension);
  const rows = trialRows(Math.max(LONG.min * SHORT_ROWS, Math.min(LONG.max * SHORT_ROWS, fit)), dimension, 1);
  const queries = trialRows(queryCount, dimension, 2);
  const share = RESULTS / Math.max(RESULTS, searchedRows);
  if (share * SHORT_ROWS < 1) plantHits(rows, queries, dimension, share);
  return { rows, queries, share };
}
