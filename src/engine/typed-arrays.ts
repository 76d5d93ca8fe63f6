/** Index of the first NaN or infinity; −1 if all values are finite. */
export function firstNonFinite(values: Float32Array): number {
  // Not findIndex, which calls a function for each value: an index has billions.
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) return i;
  return -1;
}

/** A copy of twice the length, with zeros after the values. */
export function doubled<T extends Uint8Array | Uint32Array | Float64Array>(values: T): T {
  const copy = new (values.constructor as new (length: number) => T)(2 * values.length);
  copy.set(values);
  return copy;
}

/** The vectors one after another. They are copied only if they do not follow each other in memory already. */
export function concatenated(vectors: readonly Float32Array[]): Float32Array {
  const values = vectors.reduce((sum, { length }) => sum + length, 0);
  const { buffer, byteOffset } = vectors[0] ?? new Float32Array(0);
  let end = byteOffset;
  const follow = vectors.every((vector) => {
    const follows = vector.buffer === buffer && vector.byteOffset === end;
    end += vector.byteLength;
    return follows;
  });
  if (follow) return new Float32Array(buffer, byteOffset, values);
  const all = new Float32Array(values);
  let at = 0;
  for (const vector of vectors) {
    all.set(vector, at);
    at += vector.length;
  }
  return all;
}
