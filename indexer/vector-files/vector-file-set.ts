import { DTYPE_BYTES, type VectorDtype, type VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

/**
 * A format of vector files. Its file exports one of these, and `open-vector-files.ts` lists it; option values and messages follow.
 */
export interface VectorFileFormat {
  readonly name: string;
  /** Endings of the names of its files in a folder. */
  readonly endings: readonly string[];
  /** Whether a file begins like one of this format. A file that no format recognises has raw values. */
  recognises(head: Uint8Array, path: string): boolean;
  /**
   * Finds the rows that begin in `files[at]`. Reads only headers.
   *
   * @throws TrawlError VECTORS_NOT_FOUND, VECTORS_INVALID or VECTORS_UNSUPPORTED.
   */
  open(files: readonly VectorFile[], at: number, raw: RawShape): VectorPart | VectorStream;
}

interface RawShape {
  readonly dimension: number;
  readonly dtype: VectorDtype;
}

/** Rows of one file, or of a file that was split into pieces. */
export interface VectorPart extends RawShape {
  readonly rows: number;
  readonly segments: readonly VectorSegment[];
  readonly metric?: 'inner-product' | 'l2';
  readonly ids?: readonly string[];
  readonly next: number;
}

/** The rows of a file in which they do not lie as float32 or float16 one after another: they have to be copied to be used. */
export interface VectorStream {
  /** Throws VECTORS_INVALID. */
  readonly read: () => AsyncIterable<VectorRow> | Iterable<VectorRow>;
  readonly next: number;
}

export interface VectorRow {
  readonly vector: ArrayLike<number>;
  /** Of every row of a file, or of none. */
  readonly id?: string;
}

/** A vector file, as it was when it was opened. */
export interface VectorFile {
  readonly path: string;
  readonly bytes: number;
  /** As `fileState`. */
  readonly state: string;
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
  readonly ids?: readonly string[];
  readonly files: readonly VectorFile[];
  readonly formats: readonly string[];
  /** Whether rows were copied to the working file, so that the files cannot be used in place. */
  readonly isCopied: boolean;
}

/** The segments with the bytes of rows [first, first + count). */
export function cutSegments(
  { segments, dimension, dtype }: Pick<VectorFileSet, 'segments' | 'dimension' | 'dtype'>,
  first: number,
  count: number,
): VectorSegment[] {
  const rowBytes = dimension * DTYPE_BYTES[dtype];
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
