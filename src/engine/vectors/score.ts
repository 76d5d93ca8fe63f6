import type { Metric } from '../metric.ts';

/**
 * The score that defines every ranking: a float64 sum over float32 values, in the order of the columns. Larger is nearer for
 * every metric. The product of two float32 is exact in float64, so fused and separate multiply-add give the same bits. The
 * square of a difference is not exact, so L2 must not use fused multiply-add.
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
        // 0 − 0 is +0; −sum would be −0.
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
