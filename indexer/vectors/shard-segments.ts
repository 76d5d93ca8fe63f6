import type { NativeRows } from '../../src/engine/native/kernel.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import { type OpenedShard, within } from '../../src/search/opening/index-directory.ts';

/** The segments of a shard's vectors, with absolute paths. */
export function shardSegments({ folder, manifest }: Pick<OpenedShard, 'folder' | 'manifest'>): VectorSegment[] {
  return manifest.vectors.map((segment) => ({ ...segment, path: within(folder, segment.path) }));
}

/** The vectors of a shard for the native engine. */
export function nativeRows(rows: number, segments: readonly VectorSegment[]): NativeRows {
  return { rows, dtype: segments[0]?.dtype ?? 'float32', segments };
}
