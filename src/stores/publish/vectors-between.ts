/** The point halfway from each vector to the next, row-major. None is longer than the longest vector, as their sum would be. */
export function vectorsBetween(vectors: readonly Float32Array[]): Float32Array {
  const dimension = vectors[0]!.length;
  const between = new Float32Array(vectors.length * dimension);
  for (const [i, vector] of vectors.entries()) {
    const next = vectors[(i + 1) % vectors.length]!;
    for (let j = 0; j < dimension; j++) between[i * dimension + j] = (vector[j]! + next[j]!) / 2;
  }
  return between;
}
