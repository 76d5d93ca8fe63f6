import { upperQuantile } from '../../src/base/normal-tail.ts';
import { Random } from '../../src/base/random.ts';

export interface TriedIndex {
  readonly dimension: number;
  /** Rows of the whole index: the more it has, the fewer of them come near the best hits. */
  readonly rows: number;
}

/** Values of all trial rows together: 65,536 rows of 768. */
const TRIAL_VALUES = 2 ** 16 * 768;
/**
 * Rows of the short search. A search of a shard first scores some thousand rows by the codes, whatever the size of the shard (`sample_rows`
 * in native/include/trawl/search.hpp). Both searches have at least four times as many rows, so this cost cancels out in their difference.
 */
export const SHORT_ROWS = 20_480;
/** Rows of the long search, as multiples of the short one. */
const LONG = { min: 2, max: 8 } as const;
/** Passages that a search of the index returns. */
const RESULTS = 10;

/**
 * The vectors of a trial. The short search reads the first SHORT_ROWS of the rows, the long search all of them. `share` is the share of
 * its rows that a search of the planned index returns. Where the short search would return less than one row by this share, `plantHits`
 * replaces the first rows.
 */
export function trialVectors({ dimension, rows: searchedRows }: TriedIndex, queryCount: number) {
  const fit = Math.floor(TRIAL_VALUES / dimension);
  const rows = trialRows(Math.max(LONG.min * SHORT_ROWS, Math.min(LONG.max * SHORT_ROWS, fit)), dimension, 1);
  const queries = trialRows(queryCount, dimension, 2);
  const share = RESULTS / Math.max(RESULTS, searchedRows);
  if (share * SHORT_ROWS < 1) plantHits(rows, queries, dimension, share);
  return { rows, queries, share };
}

/** Of E5-base-v2 over passages of Wikipedia: the mean cosine of two rows, and how the variances of the principal components decay. */
const MEAN_SQUARE = 0.712;
const VARIANCE = 0.288;
const OFFSET = 5;

/**
 * Rows for a trial of a search: unit vectors, row-major, with a common mean, and variances that decay along the coordinates as for E5, so
 * that a prefilter excludes as many of them. The same on every machine. @internal Exported for tests.
 */
export function trialRows(count: number, dimension: number, seed: number): Float32Array {
  const random = new Random(seed, dimension, count);
  const mean = Math.sqrt(MEAN_SQUARE / dimension);
  const shares = Float64Array.from({ length: dimension }, (_, i) => 1 / (i + OFFSET));
  const total = shares.reduce((sum, share) => sum + share, 0);
  const deviations = shares.map((share) => Math.sqrt((VARIANCE * share) / total));
  const rows = new Float32Array(count * dimension);
  for (let row = 0; row < count; row++) {
    const values = rows.subarray(row * dimension, (row + 1) * dimension);
    let square = 0;
    for (let i = 0; i < dimension; i++) {
      const value = mean + deviations[i]! * random.roughGaussian();
      values[i] = value;
      square += value * value;
    }
    const scale = 1 / Math.sqrt(square);
    for (let i = 0; i < dimension; i++) values[i]! *= scale;
  }
  return rows;
}

/** Rows whose scores give the mean and the deviation of a query's scores. */
const SAMPLED_ROWS = 256;

/**
 * Turns one row for each query, the first ones, into a hit of this query. In a large index the best hits score higher than any row of a
 * trial would, so that fewer rows come near them and need an exact score. The hit's score is the one that `share` of all rows reach, if
 * the scores of the query are normally distributed. Rows and queries are unit vectors, row-major; there are at least as many rows.
 * @internal Exported for tests.
 */
export function plantHits(rows: Float32Array, queries: Float32Array, dimension: number, share: number): void {
  const deviations = upperQuantile(share);
  const sampled = Math.min(SAMPLED_ROWS, rows.length / dimension);
  const scored = rows.slice(0, sampled * dimension);
  for (let first = 0; first < queries.length; first += dimension) {
    const query = queries.subarray(first, first + dimension);
    let [sum, squares] = [0, 0];
    for (let row = 0; row < sampled; row++) {
      const score = dot(query, scored, row * dimension);
      sum += score;
      squares += score * score;
    }
    const mean = sum / sampled;
    const deviation = Math.sqrt(Math.max(0, squares / sampled - mean * mean));
    turnTo(rows.subarray(first, first + dimension), query, Math.min(0.999, mean + deviations * deviation));
  }
}

/** Turns a unit row towards the query, so that their product is `score`. */
function turnTo(row: Float32Array, query: Float32Array, score: number): void {
  const product = dot(query, row, 0);
  const across = Math.sqrt(Math.max(1e-12, 1 - product * product));
  const kept = Math.sqrt(1 - score * score) / across;
  for (let i = 0; i < row.length; i++) row[i] = score * query[i]! + kept * (row[i]! - product * query[i]!);
}

function dot(query: Float32Array, rows: Float32Array, from: number): number {
  let sum = 0;
  for (let i = 0; i < query.length; i++) sum += query[i]! * rows[from + i]!;
  return sum;
}
