import type { VectorDtype, VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import { invalid } from './file-run.ts';
import type { VectorFile } from './vector-file-set.ts';

/**
 * Finds the rows of raw values without a header (`emb_e5.memmap` of FlashRAG and Search-R1). Several files are treated as
 * one. The number of rows follows from their size.
 *
 * @throws TrawlError VECTORS_INVALID if the size is not a multiple of the row size.
 */
export function memmapRows(
  files: readonly VectorFile[],
  { dimension, dtype }: { dimension: number; dtype: VectorDtype },
): { rows: number; segments: VectorSegment[] } {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes === 0) throw invalid(files[0]!.path, 'is empty');
  const rowBytes = dimension * (dtype === 'float16' ? 2 : 4);
  if (bytes % rowBytes !== 0) {
    throw invalid(
      files[0]!.path,
      `its size, ${bytes} bytes, is not a multiple of the row size, ${rowBytes} bytes for ${dimension} ${dtype}. The dimension ` +
        'is that of the model; set the type of the values with --dtype',
    );
  }
  const segments = files
    .filter((file) => file.bytes > 0)
    .map((file) => ({ path: file.path, offset: 0, bytes: file.bytes, dtype }));
  return { rows: bytes / rowBytes, segments };
}
