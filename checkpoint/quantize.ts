/** A matrix in 8 bits with a scale for each column: value ≈ code × scale. */
export interface QuantizedMatrix {
  /** Row-major. */
  readonly codes: Int8Array<ArrayBuffer>;
  /** Positive; 1 for a column of zeros. */
  readonly scales: Float32Array<ArrayBuffer>;
}

/**
 * Symmetric quantisation of every column of a row-major matrix to −127…127: scale = largest magnitude / 127, codes to the
 * nearest.
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

/** As `quantizeColumns`, with a scale for every row. */
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

/** As float32, so that codes are made with the scale that they are read with. */
function scaleOf(largest: number): number {
  // A subnormal scale could not be divided by.
  return largest < 1e-30 ? 1 : Math.fround(largest / 127);
}
