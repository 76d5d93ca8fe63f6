import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { bug, TrawlError } from '../../src/base/errors.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { CodesWriter } from '../../src/engine/vectors/codes-writer.ts';
import { sampleChecksum } from '../../src/engine/vectors/sample-checksum.ts';
import type { VectorSegment } from '../../src/engine/vectors/vector-segments.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import type { BuiltShard, ShardProgress, VectorContext } from '../building/build-shard.ts';
import { storedPassages } from '../building/planned-shard.ts';
import { writeShardManifest } from '../building/shard-manifest.ts';
import type { WrittenShardVectors } from '../building/shard-vectors.ts';
import { makeColumns } from '../columns/make-columns.ts';
import { CODES_FILE, fileRecord, PASSAGES_FILE } from '../index-files.ts';
import { makeLexicalIfWanted } from '../lexical/make-lexical.ts';
import { makePrefilter } from '../optimize/make-prefilter.ts';
import { checkFinite } from './check-finite.ts';
import { NormSample } from './norm-sample.ts';
import { checkVectorsUnchanged, type PrecomputedVectors, type ShardRows } from './precomputed-vectors.ts';
import { readSegments } from './read-segments.ts';
import { nativeRows } from './shard-segments.ts';

/**
 * Completes a shard with adopted vectors. Reads the vectors once, for checksums, codes and the check that all values are
 * finite. A resumed build repeats this pass.
 *
 * @throws TrawlError NON_FINITE_VECTOR with file, row and column; VECTORS_INVALID, DISK_FULL, CANCELLED.
 */
export async function adoptShard(
  folder: string,
  input: ShardManifest['input'],
  context: VectorContext,
  { vectors, rows: shardRows }: { vectors: PrecomputedVectors; rows: ShardRows },
  onProgress: (progress: ShardProgress) => void,
): Promise<BuiltShard> {
  const { encoder, kernel, signal } = context;
  const stored = storedPassages(folder);
  if (stored === undefined) throw bug(`${folder} has no passages`);
  const { segments, firstRow } = shardRows;
  const { dimension } = encoder.identity;
  const shape = { rows: stored.rows, dimension, metric: vectors.metric };
  onProgress({ doing: 'vectors', rows: 0, tokens: 0 });
  const norms = new NormSample(dimension);
  const checksums = await readOnce(folder, segments, shape, {
    kernel,
    signal,
    firstRow,
    onRows: (values, rows) => {
      norms.add(values);
      onProgress({ doing: 'vectors', rows, tokens: 0 });
    },
  });
  const warning = norms.warning(encoder.identity, vectors.metric);
  if (warning !== undefined) context.onNote(`Rows ${firstRow} to ${firstRow + shape.rows}: ${warning}`);
  onProgress({ doing: 'finish', rows: shape.rows, tokens: 0 });
  const derived = await derivedFiles(folder, segments, shape, kernel, signal);
  checkVectorsUnchanged(vectors);
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
  const lexical = await makeLexicalIfWanted(folder, context, (rows) => onProgress({ doing: 'words', rows, tokens: 0 }));
  const manifest = await writeShardManifest(folder, {
    rows: shape.rows,
    vectors: { space: { model: encoder.identity, metric: shape.metric, dimension }, written },
    stored,
    truncatedPassages: 0,
    lexical,
    columns: await makeColumns(folder, join(folder, PASSAGES_FILE), context.columns, context),
    input,
    context,
  });
  return { manifest, tokens: 0, resumedRows: 0 };
}

/** Identifies the rows by their content, independent of the paths. */
function generationOfSegments(segments: readonly VectorSegment[], checksums: readonly string[]): string {
  const facts = segments.map(({ bytes, dtype }, i) => [bytes, dtype, checksums[i]]);
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex');
}

/** Resolves links first, because the index may later be opened by another path. */
function relativeTo(folder: string, path: string): string {
  return relative(realpathSync(folder), join(realpathSync(dirname(path)), basename(path)));
}

interface Shape {
  readonly rows: number;
  readonly dimension: number;
  readonly metric: PrecomputedVectors['metric'];
}

/** Makes the codes. Returns the SHA-256 of each segment. */
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
    for await (const { first, count, values, parts } of readSegments(segments, dimension, { signal })) {
      // The engine copies the rows before `append` returns; its threads compute the codes while this thread hashes.
      const coding = codes?.append(values);
      coding?.catch(() => undefined);
      for (const { segment, bytes } of parts) hashes[segment]!.update(bytes);
      if (codes === undefined) checkFinite({ values, first, segments, dimension }, firstRow);
      try {
        await coding;
      } catch (error) {
        if (error instanceof TrawlError && error.code === 'NON_FINITE_VECTOR') {
          checkFinite({ values, first, segments, dimension }, firstRow);
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
): Promise<Pick<WrittenShardVectors, 'codes' | 'prefilter' | 'files'>> {
  if (kernel === undefined) return { codes: null, files: [] };
  const path = join(folder, CODES_FILE);
  const codes = await fileRecord(path, signal);
  const native = nativeRows(rows, segments);
  const { prefilter, file } = await makePrefilter(folder, path, { rows: native, dimension }, kernel, { signal });
  return { codes: { path: CODES_FILE }, prefilter, files: [codes, ...(file === undefined ? [] : [file])] };
}
