import { rm } from 'node:fs/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { SegmentReader, type VectorSegment } from '../../src/engine/vectors/vector-segments.ts';

/** Block size in bytes of float32 vectors. */
const BLOCK_BYTES = 8 * 1024 * 1024;

/**
 * Makes the codes of existing vectors. Removes the file at `path` after a failure.
 *
 * @throws TrawlError NON_FINITE_VECTOR, DISK_FULL, INDEX_FILE_MISSING, INDEX_FILE_TRUNCATED or CANCELLED.
 */
export async function makeCodes(
  path: string,
  vectors: { segments: readonly VectorSegment[]; dimension: number; metric: Metric },
  kernel: Kernel,
  { onRows, signal }: { onRows?: (rows: number) => void; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const { dimension, metric, segments } = vectors;
  const reader = new SegmentReader(segments, dimension);
  const writer = new CodesWriter(path, { metric, dimension }, kernel);
  const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (dimension * 4)));
  const block = new Float32Array(rowsPerBlock * dimension);
  try {
    for (let first = 0; first < reader.rows; first += rowsPerBlock) {
      throwIfCancelled(signal);
      const count = Math.min(rowsPerBlock, reader.rows - first);
      reader.read(first, count, block);
      await writer.append(block.subarray(0, count * dimension));
      onRows?.(first + count);
    }
    await writer.finish();
  } catch (error) {
    writer.abandon();
    await rm(path, { force: true });
    throw error;
  } finally {
    reader.close();
  }
}
