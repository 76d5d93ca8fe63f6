import type { VectorDtype, VectorSegment } from '../src/vector-index/vector-segments.ts';
import type { EmbeddingFile } from './embedding-set.ts';
import { invalid } from './file-run.ts';

/**
 * Values without a header (`emb_e5.memmap` of FlashRAG and Search-R1): rows of the model's dimension, as many as the bytes
 * make. Several files are pieces of one.
 *
 * @throws TrawlError VECTORS_INVALID where the bytes are no whole number of rows.
 */
export function memmapRows(
  files: readonly EmbeddingFile[],
  { dimension, dtype }: { dimension: number; dtype: VectorDtype },
): { rows: number; segments: VectorSegment[] } {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes === 0) throw invalid(files[0]!.path, 'is empty');
  const rowBytes = dimension * (dtype === 'float16' ? 2 : 4);
  if (bytes % rowBytes !== 0) {
    throw invalid(
      files[0]!.path,
      `${bytes} bytes without a header are no whole number of rows of ${dimension} ${dtype} (${rowBytes} bytes each; ` +
        `${bytes % rowBytes} are left over). The model gives the dimension; --dtype says the type of the values`,
    );
  }
  const segments = files
    .filter((file) => file.bytes > 0)
    .map((file) => ({ path: file.path, offset: 0, bytes: file.bytes, dtype }));
  return { rows: bytes / rowBytes, segments };
}
