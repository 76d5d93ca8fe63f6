import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { faissMetric } from '../../src/engine/vectors/faiss-format.ts';
import {
  encodeFp16Header,
  FAISS_FP16_HEADER_BYTES,
  fp16FileBytes,
} from '../../src/engine/vectors/faiss-fp16-format.ts';
import type { WrittenVectors } from '../../src/engine/vectors/flat-index-writer.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

interface Rows {
  readonly rows: number;
  readonly dimension: number;
  readonly metric: Metric;
  /** Row-major float32, in order. */
  readonly blocks: AsyncIterable<{ readonly first: number; readonly count: number; readonly values: Float32Array }>;
}

/**
 * Writes vectors as float16 if float16 can represent every value, as for float16 encoders. Halves the size; scores stay equal
 * to the last bit. Otherwise returns null and leaves no file.
 */
export async function rewriteFloat16(
  path: string,
  { rows, dimension, metric, blocks }: Rows,
  kernel: Kernel,
  onRows: (rows: number) => void = () => undefined,
): Promise<WrittenVectors | null> {
  const file = await open(path, 'w');
  const hash = createHash('sha256');
  const write = async (bytes: Uint8Array): Promise<void> => {
    hash.update(bytes);
    await file.writeFile(bytes);
  };
  let complete = false;
  try {
    await write(encodeFp16Header({ rows, dimension, metric: faissMetric(metric) }));
    for await (const { first, count, values } of blocks) {
      if (kernel.firstNotHalf(values) < values.length) return null;
      const halves = kernel.toHalves(values);
      await write(new Uint8Array(halves.buffer, halves.byteOffset, halves.byteLength));
      onRows(first + count);
    }
    await file.sync();
    complete = true;
  } finally {
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
