import type { VectorDtype, VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

export const VECTOR_FILE_FORMATS = ['faiss', 'npy', 'memmap', 'pickle'] as const;
export type VectorFileFormat = (typeof VECTOR_FILE_FORMATS)[number];

/** A vector file, with size and modification time at the time of opening. */
export interface VectorFile {
  /** Absolute path. */
  readonly path: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** Vectors in existing files, to be used in place. */
export interface VectorFileSet {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  /** Byte ranges whose concatenation is the matrix of rows, row-major. A row may continue in the next segment. */
  readonly segments: readonly VectorSegment[];
  /** The metric recorded in the files; undefined for formats without one. */
  readonly metric?: 'inner-product' | 'l2';
  /** Ids by row, if the files contain ids. */
  readonly ids?: readonly string[];
  readonly files: readonly VectorFile[];
  readonly formats: readonly VectorFileFormat[];
}

/** The segments with the bytes of rows [first, first + count). */
export function cutSegments(
  { segments, dimension, dtype }: Pick<VectorFileSet, 'segments' | 'dimension' | 'dtype'>,
  first: number,
  count: number,
): VectorSegment[] {
  const rowBytes = dimension * (dtype === 'float16' ? 2 : 4);
  const [begin, end] = [first * rowBytes, (first + count) * rowBytes];
  const cut: VectorSegment[] = [];
  let at = 0;
  for (const segment of segments) {
    const from = Math.max(begin, at);
    const to = Math.min(end, at + segment.bytes);
    if (from < to) cut.push({ ...segment, offset: segment.offset + (from - at), bytes: to - from });
    at += segment.bytes;
  }
  return cut;
}
