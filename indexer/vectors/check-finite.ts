import { TrawlError } from '../../src/errors.ts';
import { DTYPE_BYTES, type VectorSegment } from '../../src/vector-index/vector-segments.ts';

/** @throws TrawlError NON_FINITE_VECTOR naming the file, the row of the whole and the column. */
export function checkFinite(
  values: Float32Array,
  at: { segments: readonly VectorSegment[]; dimension: number; first: number; firstRow: number },
): void {
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad < 0) return;
  const { segments, dimension, first, firstRow } = at;
  const row = first + Math.floor(bad / dimension);
  const column = bad % dimension;
  let position = (row * dimension + column) * DTYPE_BYTES[segments[0]!.dtype];
  const segment = segments.find(({ bytes }) => {
    if (position < bytes) return true;
    position -= bytes;
    return false;
  })!;
  throw new TrawlError(
    'NON_FINITE_VECTOR',
    `${segment.path}: the vector of row ${firstRow + row} holds ${values[bad]} in column ${column} (byte ` +
      `${segment.offset + position}). Vectors must be finite: embed that passage again.`,
    { details: { path: segment.path, row: firstRow + row, column } },
  );
}
