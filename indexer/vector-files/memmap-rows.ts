import { DTYPE_BYTES } from '../../src/engine/vectors/vector-segments.ts';
import { invalid } from './file-run.ts';
import type { VectorFileFormat } from './vector-file-set.ts';

/** Raw values without a header (`emb_e5.memmap` of FlashRAG and Search-R1). All files from `at` on are treated as one. */
export const memmap: VectorFileFormat = {
  name: 'memmap',
  endings: ['.memmap'],
  recognises: () => false,
  open(all, at, { dimension, dtype }) {
    const files = all.slice(at);
    const { path } = files[0]!;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    if (bytes === 0) throw invalid(path, 'is empty');
    const rowBytes = dimension * DTYPE_BYTES[dtype];
    if (bytes % rowBytes !== 0) {
      throw invalid(
        path,
        `its size, ${bytes} bytes, is not a multiple of the row size, ${rowBytes} bytes for ${dimension} ${dtype}. The dimension ` +
          'comes from the model; set the type of the values with --dtype',
      );
    }
    const segments = files
      .filter((file) => file.bytes > 0)
      .map((file) => ({ path: file.path, offset: 0, bytes: file.bytes, dtype }));
    return { rows: bytes / rowBytes, dimension, dtype, segments, next: all.length };
  },
};
