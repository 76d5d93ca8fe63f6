/** Probability that a standard normal variable is larger than z. Relative error below 1.2e-7 (Numerical Recipes, erfcc). */
export function upperTail(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.5 * x);
  const polynomial = COEFFICIENTS.reduceRight((sum, coefficient) => coefficient + t * sum, 0);
  const erfc = t * Math.exp(-x * x + polynomial);
  return z >= 0 ? erfc / 2 : 1 - erfc / 2;
}

const COEFFICIENTS = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
  0.17087277,
];

/** The z that a standard normal variable exceeds with probability p, for p from 1e-12 to 1 − 1e-12. */
export function upperQuantile(p: number): number {
  let low = -8;
  let high = 8;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (upperTail(middle) > p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
