/** An int8 matrix with a scale per column or per row: value ≈ code × scale. */
export interface QuantizedMatrix {
  /** Row-major. */
  readonly codes: Int8Array<ArrayBuffer>;
  /** Positive; 1 for a column or row of zeros. */
  readonly scales: Float32Array<ArrayBuffer>;
}

/**
 * Quantises every column of a row-major matrix symmetrically to −127…127: scale = largest magnitude / 127, codes rounded to
 * the nearest.
 */
export function quantizeColumns(values: Float32Array, columns: number): QuantizedMatrix {
  const largest = new Float32Array(columns);
  for (let at = 0; at < values.length; ) {
    for (let column = 0; column < columns; column++, at++) {
      const magnitude = Math.abs(values[at]!);
      if (magnitude > largest[column]!) largest[column] = magnitude;
    }
  }
  const scales = largest.map(scaleOf);
  const codes = new Int8Array(values.length);
  for (let at = 0; at < values.length; ) {
    for (let column = 0; column < columns; column++, at++) codes[at] = Math.round(values[at]! / scales[column]!);
  }
  return { codes, scales };
}

/** As `quantizeColumns`, with one scale per row. */
export function quantizeRows(values: Float32Array, columns: number): QuantizedMatrix {
  const scales = new Float32Array(values.length / columns);
  const codes = new Int8Array(values.length);
  for (let row = 0; row < scales.length; row++) {
    const from = row * columns;
    let largest = 0;
    for (let at = from; at < from + columns; at++) largest = Math.max(largest, Math.abs(values[at]!));
    const scale = scaleOf(largest);
    scales[row] = scale;
    for (let at = from; at < from + columns; at++) codes[at] = Math.round(values[at]! / scale);
  }
  return { codes, scales };
}

/** Rounded to float32, because the stored scale is float32 and codes must be computed with the stored value. */
function scaleOf(largest: number): number {
  // Dividing by a subnormal scale can overflow.
  return largest < 1e-30 ? 1 : Math.fround(largest / 127);
}
