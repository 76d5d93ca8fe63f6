import type { NativeRows } from '../../src/native/kernel.ts';
import { type OpenedShard, within } from '../../src/retrieval/opening/index-directory.ts';
import type { VectorSegment } from '../../src/vector-index/vector-segments.ts';

/** The segments of a shard's vectors, with absolute paths. */
export function shardSegments({ folder, manifest }: Pick<OpenedShard, 'folder' | 'manifest'>): VectorSegment[] {
  return manifest.vectors.map((segment) => ({ ...segment, path: within(folder, segment.path) }));
}

/** The vectors of a shard for the native engine. */
export function nativeRows(rows: number, segments: readonly VectorSegment[]): NativeRows {
  return { rows, dtype: segments[0]?.dtype ?? 'float32', segments };
}
