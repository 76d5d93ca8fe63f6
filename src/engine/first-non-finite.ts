/** Index of the first NaN or infinity; −1 if all values are finite. */
export function firstNonFinite(values: Float32Array): number {
  // Not findIndex, which calls a function for each value: an index has billions.
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i])) return i;
  return -1;
}
