import type { Metric } from '../metric.ts';

/**
 * The score that defines every ranking: float64 sums in index order over float32 values. The product of two float32 is
 * exact in float64, so an implementation may or may not fuse multiply and add; the square of a difference is not, so L2
 * must not. Larger is nearer for every metric.
 */
export type Score = (query: Float32Array, queryStart: number, rows: Float32Array, rowStart: number) => number;

export function scoreFunction(metric: Metric, dimension: number): Score {
  switch (metric) {
    case 'inner-product':
      return (q, qs, x, xs) => dot(q, qs, x, xs, dimension);
    case 'cosine':
      return (q, qs, x, xs) => {
        const queryNorm = Math.sqrt(dot(q, qs, q, qs, dimension));
        const rowNorm = Math.sqrt(dot(x, xs, x, xs, dimension));
        if (queryNorm === 0 || rowNorm === 0) return 0;
        return dot(q, qs, x, xs, dimension) / queryNorm / rowNorm;
      };
    case 'l2':
      return (q, qs, x, xs) => {
        let sum = 0;
        for (let j = 0; j < dimension; j++) {
          const difference = q[qs + j]! - x[xs + j]!;
          sum += difference * difference;
        }
        // 0 − 0 is +0, where −sum would be −0.
        return 0 - sum;
      };
    default:
      throw new TypeError(`unknown metric: ${metric satisfies never}`);
  }
}

function dot(a: Float32Array, aStart: number, b: Float32Array, bStart: number, dimension: number): number {
  let sum = 0;
  for (let j = 0; j < dimension; j++) sum += a[aStart + j]! * b[bStart + j]!;
  return sum;
}
