import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { throwIfCancelled } from '../../src/abort.ts';
import type { Metric } from '../../src/metric.ts';
import { faissMetric } from '../../src/vector-index/faiss-format.ts';
import { encodeFp16Header, FAISS_FP16_HEADER_BYTES, fp16FileBytes } from '../../src/vector-index/faiss-fp16-format.ts';
import type { WrittenVectors } from '../../src/vector-index/flat-index-writer.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import { SegmentReader, type VectorSegment } from '../../src/vector-index/vector-segments.ts';

/** Vectors read at once. */
const BLOCK_BYTES = 8 * 1024 * 1024;

/**
 * Writes the rows as float16 where every value is one (as vectors from float16 encoders are): half the space, nothing
 * lost, the same scores to the bit. Null, and no file, where a value is not.
 */
export async function rewriteFloat16(
  path: string,
  vectors: { segments: readonly VectorSegment[]; dimension: number; metric: Metric },
  kernel: Kernel,
  { onRows, signal }: { onRows?: (rows: number) => void; signal?: AbortSignal | undefined } = {},
): Promise<WrittenVectors | null> {
  const { dimension, metric, segments } = vectors;
  const reader = new SegmentReader(segments, dimension);
  const { rows } = reader;
  const file = await open(path, 'w');
  const hash = createHash('sha256');
  const write = async (bytes: Uint8Array): Promise<void> => {
    hash.update(bytes);
    await file.writeFile(bytes);
  };
  let complete = false;
  try {
    await write(encodeFp16Header({ rows, dimension, metric: faissMetric(metric) }));
    const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (dimension * 4)));
    const block = new Float32Array(rowsPerBlock * dimension);
    for (let first = 0; first < rows; first += rowsPerBlock) {
      throwIfCancelled(signal);
      const count = Math.min(rowsPerBlock, rows - first);
      reader.read(first, count, block);
      const values = block.subarray(0, count * dimension);
      if (kernel.firstNotHalf(values) < values.length) return null;
      const halves = kernel.toHalves(values);
      await write(new Uint8Array(halves.buffer, halves.byteOffset, halves.byteLength));
      onRows?.(first + count);
    }
    await file.sync();
    complete = true;
  } finally {
    reader.close();
    await file.close();
    if (!complete) await rm(path, { force: true });
  }
  const fileBytes = fp16FileBytes(rows, dimension);
  const segment: VectorSegment = {
    path,
    offset: FAISS_FP16_HEADER_BYTES,
    bytes: fileBytes - FAISS_FP16_HEADER_BYTES,
    dtype: 'float16',
  };
  return { segment, fileBytes, sha256: hash.digest('hex') };
}
