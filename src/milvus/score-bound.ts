import type { Metric } from '../metric.ts';

/** Unit roundoff of float32. */
const U = 2 ** -24;
/** Covers the roundings in float64 of the scores here and of the bounds themselves. */
const SLACK = 1 + 2 ** -20;
/** The largest norm of a vector in Milvus and its inverse: between them no sum of squares overflows or underflows in float32. */
export const LARGEST_NORM = 2 ** 40;

/** γ_n of a sum with n roundings. */
function gamma(n: number): number {
  return (n * U) / (1 - n * U);
}

/**
 * How far the float32 score of a query and any row can be from the score here, whatever the order of the sum, with or without fused
 * multiply-add, and whether or not distances and cosines are computed from norms (docs/cluster.md has the derivation).
 *
 * @param queryNorm the norm of the query as sent.
 * @param rowNorm the largest norm of a row; at most `LARGEST_NORM`.
 */
export function scoreError(
  metric: Metric,
  {
    dimension,
    queryNorm,
    rowNorm,
  }: { readonly dimension: number; readonly queryNorm: number; readonly rowNorm: number },
): number {
  switch (metric) {
    case 'inner-product':
      return gamma(dimension + 4) * queryNorm * rowNorm * SLACK;
    case 'l2':
      return gamma(dimension + 8) * (queryNorm + rowNorm) ** 2 * SLACK;
    case 'cosine':
      return 2 * gamma(dimension + 16) * SLACK;
  }
}

/** The norm of `values[start, start + dimension)`, a little too large rather than too small. */
export function upperNorm(values: Float32Array, start: number, dimension: number): number {
  let sum = 0;
  for (let j = start; j < start + dimension; j++) sum += values[j]! * values[j]!;
  return Math.sqrt(sum) * (1 + (dimension + 4) * 2 ** -52);
}
