import type { Metric } from '../../engine/metric.ts';
import type { StoreScores } from '../published/candidate-source.ts';

const U = 2 ** -24;
/** Covers the roundings in float64 of the scores here and of the bounds themselves. */
const SLACK = 1 + 2 ** -20;
/** The largest norm of a vector in Milvus, and by its inverse the least but 0: sums of squares stay within the range of float32. */
export const LARGEST_NORM = 2 ** 40;

/** What an operand or a result of float32 loses at most by underflow, even where subnormal numbers are flushed to zero. */
const TINY = 2 ** -126;
/**
 * Knowhere, which computes Milvus's cosines, leaves a vector as it is where its squared norm differs from 1 by at most 1e-5. Then its
 * cosines are off by 5e-6, and by as much for the other vector; the rest is for roundings of that comparison.
 */
const NOT_NORMALISED = 1.1e-5;

/** γ_n of a sum with n roundings. */
function gamma(n: number): number {
  return (n * U) / (1 - n * U);
}

/**
 * How far the float32 score of a query and any row can be from the score here, whatever the order of the sum, with or without fused
 * multiply-add, and whether or not distances and cosines are computed from norms (docs/cluster.md has the derivation).
 *
 * @param queryNorm the norm of the query as sent.
 * @param rowNorm the largest norm of a row; at most `LARGEST_NORM`. With cosine, no row has a norm below its inverse.
 */
function scoreError(
  metric: Metric,
  {
    dimension,
    queryNorm,
    rowNorm,
  }: { readonly dimension: number; readonly queryNorm: number; readonly rowNorm: number },
): number {
  const underflow = 16 * dimension * TINY * (1 + queryNorm + rowNorm);
  switch (metric) {
    case 'inner-product':
      return (gamma(dimension + 4) * queryNorm * rowNorm + underflow) * SLACK;
    case 'l2':
      return (gamma(dimension + 8) * (queryNorm + rowNorm) ** 2 + underflow) * SLACK;
    case 'cosine':
      return (gamma(2 * dimension + 32) + NOT_NORMALISED) * SLACK;
  }
}

export const MILVUS_SCORES: StoreScores = {
  store: 'Milvus',
  largestNorm: LARGEST_NORM,
  scalesQueries: true,
  error: scoreError,
};
