import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel, NativeRows } from '../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import {
  encodeFp16Header,
  FAISS_FP16_HEADER_BYTES,
  faissMetric,
  fp16FileBytes,
} from '../../src/engine/vectors/faiss-format.ts';
import type { FlatShape, WrittenVectors } from '../../src/engine/vectors/flat-index-writer.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { fileRecord, PREFILTER_FILE } from '../index-files.ts';
import { readSegments } from '../vectors/read-segments.ts';

/**
 * Makes the codes of existing vectors. Removes the file at `path` after a failure.
 *
 * @throws TrawlError NON_FINITE_VECTOR, DISK_FULL, CANCELLED; the errors of `readSegments`.
 */
export async function makeCodes(
  path: string,
  vectors: { segments: readonly VectorSegment[]; dimension: number; metric: Metric },
  kernel: Kernel,
  { onRows, signal }: { onRows?: (rows: number) => void; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const writer = new CodesWriter(path, vectors, kernel);
  try {
    for await (const { first, count, values } of readSegments(vectors.segments, vectors.dimension, { signal })) {
      await writer.append(values);
      onRows?.(first + count);
    }
    await writer.finish();
  } catch (error) {
    writer.abandon();
    await rm(path, { force: true });
    throw error;
  }
}

/**
 * Makes the prefilter of a shard's finished codes, unless it would not make searches faster; `files` is empty then.
 *
 * @param fileName name of the written file. The record has the final name, PREFILTER_FILE.
 * @throws TrawlError DISK_FULL, INDEX_FILE_MISSING, INDEX_FILE_FOREIGN or CANCELLED.
 */
export async function makePrefilter(
  folder: string,
  codesPath: string,
  { rows, dimension }: { rows: NativeRows; dimension: number },
  kernel: Kernel,
  { fileName = PREFILTER_FILE, signal }: { fileName?: string; signal?: AbortSignal } = {},
): Promise<{ prefilter: NonNullable<ShardManifest['prefilter']>; files: FileRecord[] }> {
  const path = join(folder, fileName);
  const { components, reason } = await kernel.makePrefilter(path, codesPath, rows, dimension, 0, signal);
  if (components === 0) return { prefilter: { path: null, reason }, files: [] };
  const file = { ...(await fileRecord(path, signal)), path: PREFILTER_FILE };
  return { prefilter: { path: PREFILTER_FILE, reason }, files: [file] };
}

/**
 * Whether the codes identify all their rows (version 2), and the prefilter, if there is one, was made from them.
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

interface Rows extends FlatShape {
  /** Row-major float32, in order. */
  readonly blocks: AsyncIterable<{ readonly first: number; readonly count: number; readonly values: Float32Array }>;
}

/**
 * Writes vectors as float16 if float16 can represent every value, as for float16 encoders. Halves the size; scores stay equal
 * to the last bit. Otherwise returns undefined and leaves no file.
 */
export async function rewriteFloat16(
  path: string,
  { rows, dimension, metric, blocks }: Rows,
  kernel: Kernel,
  onRows?: (rows: number) => void,
): Promise<WrittenVectors | undefined> {
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
      if (kernel.firstNotHalf(values) < values.length) return undefined;
      const halves = kernel.toHalves(values);
      await write(new Uint8Array(halves.buffer, halves.byteOffset, halves.byteLength));
      onRows?.(first + count);
    }
    await file.sync();
    complete = true;
  } finally {
    await file.close();
    if (!complete) await rm(path, { force: true });
  }
  const fileBytes = fp16FileBytes(rows, dimension);
  const offset = FAISS_FP16_HEADER_BYTES;
  const segment = { path, offset, bytes: fileBytes - offset, dtype: 'float16' } as const;
  return { segment, fileBytes, sha256: hash.digest('hex') };
}
