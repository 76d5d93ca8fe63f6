import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { bug, TrawlError } from '../../src/errors.ts';
import { sha256OfFile } from '../../src/file-checksum.ts';
import type { FileRecord } from '../../src/manifest/schemas.ts';
import type { ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { CodesWriter } from '../../src/vector-index/codes-writer.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import { sampleChecksum } from '../../src/vector-index/sample-checksum.ts';
import type { VectorSegment } from '../../src/vector-index/vector-segments.ts';
import type { BuiltShard, ShardContext, ShardProgress } from '../build/build-shard.ts';
import { writeShardManifest } from '../build/shard-manifest.ts';
import type { WrittenShardVectors } from '../build/shard-vectors.ts';
import { storedPassages } from '../build/store-passages.ts';
import { CODES_FILE } from '../index-files.ts';
import { makeScreen } from '../optimize/make-screen.ts';
import { checkFinite } from './check-finite.ts';
import { checkUnchanged, type GivenVectors, type ShardRows } from './given-vectors.ts';
import { NormSample } from './norm-sample.ts';
import { readSegments } from './read-segments.ts';

/**
 * Completes a shard whose vectors stay where they lie: one pass over them gives checksums, codes, and that all values are
 * finite. A process that takes the shard up again begins this pass anew.
 *
 * @throws TrawlError NON_FINITE_VECTOR naming file, row and column; VECTORS_INVALID, DISK_FULL, CANCELLED.
 */
export async function adoptShard(
  folder: string,
  input: ShardManifest['input'],
  context: ShardContext,
  { vectors, rows: shardRows }: { vectors: GivenVectors; rows: ShardRows },
  onProgress: (progress: ShardProgress) => void,
): Promise<BuiltShard> {
  const { encoder, kernel, signal } = context;
  const stored = storedPassages(folder);
  if (stored === undefined) throw bug(`${folder} has no passages`);
  const begun = performance.now();
  const { segments, firstRow } = shardRows;
  const { dimension } = encoder.identity;
  const shape = { rows: stored.rows, dimension, metric: vectors.metric };
  onProgress({ rows: 0, tokens: 0, finishing: false });
  const norms = new NormSample(dimension);
  const checksums = await readOnce(folder, segments, shape, {
    kernel,
    signal,
    firstRow,
    onRows: (values, rows) => {
      norms.look(values);
      onProgress({ rows, tokens: 0, finishing: false });
    },
  });
  const norm = norms.remark(encoder.identity, vectors.metric);
  if (norm !== undefined) context.onNote(`rows ${firstRow} to ${firstRow + shape.rows}: ${norm}`);
  const read = performance.now();
  onProgress({ rows: shape.rows, tokens: 0, finishing: true });
  const derived = await derivedFiles(folder, segments, shape, kernel, signal);
  checkUnchanged(vectors);
  const sizes = new Map(vectors.set.files.map(({ path, bytes }) => [path, bytes]));
  const adopted = segments.map((segment, i) => ({
    ...segment,
    path: vectors.relativePaths === true ? relativeTo(folder, segment.path) : segment.path,
    adopted: {
      fileBytes: sizes.get(segment.path)!,
      sha256: checksums[i]!,
      sample: sampleChecksum(segment.path, segment),
    },
  }));
  const identity = generationOfSegments(segments, checksums);
  const written: WrittenShardVectors = { ...derived, vectors: adopted, sha256: identity };
  const manifest = await writeShardManifest(folder, { shape, stored, truncatedPassages: 0, written, input, context });
  return { manifest, tokens: 0, resumedRows: 0, encodeMs: read - begun, finishMs: performance.now() - read };
}

/** What identifies the rows, wherever they lie. */
function generationOfSegments(segments: readonly VectorSegment[], checksums: readonly string[]): string {
  const facts = segments.map(({ bytes, dtype }, i) => [bytes, dtype, checksums[i]]);
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

/** By where the folders lie: who opens the index may come by another way than who made it. */
function relativeTo(folder: string, path: string): string {
  return relative(realpathSync(folder), join(realpathSync(dirname(path)), basename(path)));
}

interface Shape {
  readonly rows: number;
  readonly dimension: number;
  readonly metric: GivenVectors['metric'];
}

/** The one pass: codes as they come, and the SHA-256 of each segment. */
async function readOnce(
  folder: string,
  segments: readonly VectorSegment[],
  { dimension, metric }: Shape,
  {
    kernel,
    signal,
    firstRow,
    onRows,
  }: {
    kernel: Kernel | undefined;
    signal: AbortSignal | undefined;
    firstRow: number;
    onRows: (values: Float32Array, rows: number) => void;
  },
): Promise<string[]> {
  const hashes = segments.map(() => createHash('sha256'));
  const path = join(folder, CODES_FILE);
  const codes = kernel === undefined ? undefined : new CodesWriter(path, { metric, dimension }, kernel);
  try {
    for await (const { first, count, values, pieces } of readSegments(segments, dimension, { signal })) {
      // The engine's threads work while this one hashes; it has taken its copy of the rows when the call returns.
      const coding = codes?.append(values);
      coding?.catch(() => undefined);
      for (const { segment, bytes } of pieces) hashes[segment]!.update(bytes);
      if (codes === undefined) checkFinite(values, { segments, dimension, first, firstRow });
      try {
        await coding;
      } catch (error) {
        if (error instanceof TrawlError && error.code === 'NON_FINITE_VECTOR') {
          checkFinite(values, { segments, dimension, first, firstRow });
        }
        throw error;
      }
      onRows(values, first + count);
    }
    await codes?.finish();
  } catch (error) {
    codes?.abandon();
    await rm(path, { force: true });
    throw error;
  }
  return hashes.map((hash) => hash.digest('hex'));
}

async function derivedFiles(
  folder: string,
  segments: readonly VectorSegment[],
  { rows, dimension }: Shape,
  kernel: Kernel | undefined,
  signal: AbortSignal | undefined,
): Promise<Pick<WrittenShardVectors, 'codes' | 'screen' | 'files'>> {
  if (kernel === undefined) return { codes: null, files: [] };
  const path = join(folder, CODES_FILE);
  const codes: FileRecord = {
    path: CODES_FILE,
    bytes: (await stat(path)).size,
    sha256: await sha256OfFile(path, signal),
  };
  const native = { rows, dtype: segments[0]?.dtype ?? ('float32' as const), segments };
  const { screen, file } = await makeScreen(folder, path, { rows: native, dimension }, kernel, { signal });
  return { codes: { path: CODES_FILE }, screen, files: [codes, ...(file === undefined ? [] : [file])] };
}
