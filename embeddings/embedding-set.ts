import type { VectorDtype, VectorSegment } from '../src/vector-index/vector-segments.ts';

export const EMBEDDING_FORMATS = ['faiss', 'npy', 'memmap', 'pickle'] as const;
export type EmbeddingFormat = (typeof EMBEDDING_FORMATS)[number];

/** A file that vectors lie in, as it was when it was looked at. */
export interface EmbeddingFile {
  /** Absolute path. */
  readonly path: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** Vectors that somebody has computed, where they lie: usable in place, whatever kind of file holds them. */
export interface EmbeddingSet {
  readonly rows: number;
  readonly dimension: number;
  readonly dtype: VectorDtype;
  /** The rows as runs of bytes, one after another, row-major; a boundary may lie inside a row. */
  readonly segments: readonly VectorSegment[];
  /** What the file says larger scores mean; undefined where its kind does not say. */
  readonly metric?: 'inner-product' | 'l2' | undefined;
  /** Ids of the rows in order, where the files have them. */
  readonly ids?: readonly string[] | undefined;
  readonly files: readonly EmbeddingFile[];
  readonly formats: readonly EmbeddingFormat[];
}

/** The bytes of rows [first, first + count), as segments. */
export function cutSegments(
  { segments, dimension, dtype }: Pick<EmbeddingSet, 'segments' | 'dimension' | 'dtype'>,
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
