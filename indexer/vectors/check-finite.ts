import { TrawlError } from '../../src/base/errors.ts';
import { firstNonFinite } from '../../src/engine/first-non-finite.ts';
import { DTYPE_BYTES, type VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

/** Rows read from the segments of a shard. */
export interface ReadRows {
  readonly values: Float32Array;
  /** Number of the first row in the shard. */
  readonly first: number;
  readonly segments: readonly VectorSegment[];
  readonly dimension: number;
}

export interface NonFiniteValue {
  readonly value: number;
  /** Number of its row in the shard. */
  readonly row: number;
  readonly column: number;
  /** Its file, and its byte offset there. */
  readonly path: string;
  readonly byte: number;
}

/** The first value that is not finite; undefined if all are. */
export function findNonFinite({ values, first, segments, dimension }: ReadRows): NonFiniteValue | undefined {
  const bad = firstNonFinite(values);
  if (bad < 0) return undefined;
  const row = first + Math.floor(bad / dimension);
  const column = bad % dimension;
  let position = (row * dimension + column) * DTYPE_BYTES[segments[0]!.dtype];
  const { path, offset } = segments.find(({ bytes }) => {
    if (position < bytes) return true;
    position -= bytes;
    return false;
  })!;
  return { value: values[bad]!, row, column, path, byte: offset + position };
}

/**
 * @param firstRow number of the shard's first row in the index.
 * @throws TrawlError NON_FINITE_VECTOR with the file, the row in the index and the column.
 */
export function checkFinite(rows: ReadRows, firstRow: number): void {
  const found = findNonFinite(rows);
  if (found === undefined) return;
  const { value, column, path, byte } = found;
  const row = firstRow + found.row;
  throw new TrawlError(
    'NON_FINITE_VECTOR',
    `${path}: the vector of row ${row} has ${value} in column ${column} (byte ${byte}). Vectors must be finite: embed ` +
      'that passage again.',
    { details: { path, row, column } },
  );
}
