export interface Similarities {
  /** Cosines, −1 to 1, in row order; larger is nearer. */
  readonly values: readonly number[];
  readonly median: number;
  readonly lowest: number;
  readonly mean: number;
}

/** The cosine of vector i (row-major) and that of row i, for each i; 0 if one of them is zero. */
export function similarities(vectors: Float32Array, rows: readonly { readonly vector: Float32Array }[]): Similarities {
  return summary(
    rows.map(({ vector }, i) => {
      let [dot, left, right] = [0, 0, 0];
      for (const [j, value] of vector.entries()) {
        const other = vectors[i * vector.length + j]!;
        dot += value * other;
        left += value * value;
        right += other * other;
      }
      return left === 0 || right === 0 ? 0 : dot / Math.sqrt(left * right);
    }),
  );
}

export function summary(values: readonly number[]): Similarities {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  return { values, median, lowest: sorted[0] ?? 0, mean };
}
