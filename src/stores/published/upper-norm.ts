/** The norm of `values[start, start + dimension)`, a little too large rather than too small. */
export function upperNorm(values: Float32Array, start: number, dimension: number): number {
  let sum = 0;
  for (let j = start; j < start + dimension; j++) sum += values[j]! * values[j]!;
  return Math.sqrt(sum) * (1 + (dimension + 4) * 2 ** -52);
}
