import { upperQuantile } from '../../src/base/normal-tail.ts';

/** Rows of which the mean and the deviation of a query's scores are taken. */
const SAMPLED_ROWS = 256;

/**
 * Replaces the first rows by one hit of each query. In a large index the best hits score higher than any row of a trial, so that fewer
 * rows come near them and need an exact score. A hit has the score that the share `share` of the rows of the index would reach if the
 * scores of a query are normally distributed. Rows and queries are unit vectors, row-major; there are at least as many rows as queries.
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
