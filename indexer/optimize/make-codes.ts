import { open, rm } from 'node:fs/promises';
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

/**
 * Whether codes have an identity of all their rows, as those of version 2 do, and the prefilter, if there is one, was made for these codes.
 * docs/index-format.md has the places of the fields.
 */
export async function areCurrent(codesPath: string, prefilterPath?: string): Promise<boolean> {
  if ((await bytesAt(codesPath, 8, 4)).readUInt32LE() < 2) return false;
  if (prefilterPath === undefined) return true;
  return (await bytesAt(codesPath, -32, 8)).equals(await bytesAt(prefilterPath, 64, 8));
}

/** Bytes of a file; a negative position counts from its end. */
async function bytesAt(path: string, position: number, length: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const from = position < 0 ? (await file.stat()).size + position : position;
    return (await file.read(Buffer.alloc(length), 0, length, from)).buffer;
  } finally {
    await file.close();
  }
}
