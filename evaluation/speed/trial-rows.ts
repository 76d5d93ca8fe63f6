import { Random } from '../../src/base/random.ts';

/** Of E5-base-v2 over passages of Wikipedia: the mean cosine of two rows, and how the variances of the principal components decay. */
const MEAN_SQUARE = 0.712;
const VARIANCE = 0.288;
const OFFSET = 5;

/**
 * Rows for a trial of a search: unit vectors, row-major, with a common mean and variances that decay along the coordinates as those of
 * E5 do, so that a prefilter excludes as many of them. The same on every machine.
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
