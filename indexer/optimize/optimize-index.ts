import { realpathSync } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256OfFile } from '../../src/file-checksum.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import type { FileRecord } from '../../src/manifest/schemas.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { syncFolder, writeJsonDurably } from '../../src/manifest/write-json.ts';
import {
  type IndexDirectory,
  type OpenedShard,
  openIndexDirectory,
  within,
} from '../../src/retrieval/index-directory.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import type { VectorSegment } from '../../src/vector-index/vector-segments.ts';
import { OutputFolder } from '../build/output-folder.ts';
import { CODES_FILE, SCREEN_FILE, VECTORS_FILE } from '../index-files.ts';
import { requireUnchangedVectors } from '../verify/vector-checksums.ts';
import { writeFailure } from '../write-failure.ts';
import { makeCodes } from './make-codes.ts';
import { makeScreen } from './make-screen.ts';
import { rewriteFloat16 } from './rewrite-float16.ts';

/** Name of the vectors where they are stored as float16. */
const FLOAT16_FILE = 'vectors.f16.faiss';

export interface OptimizeOptions {
  /** Store rows as float16 where that loses nothing. */
  readonly float16: boolean;
  readonly onStep: (doing: string) => void;
  readonly onRows?: (rows: number, total: number) => void;
  readonly signal?: AbortSignal;
}

export interface OptimizeSummary {
  /** Shards that got codes. */
  readonly codesMade: number;
  /** Shards that got a screen. */
  readonly screensMade: number;
  /** Shards for which a screen would not pay. */
  readonly screensOfNoUse: number;
  /** Shards whose rows were rewritten as float16. */
  readonly rewritten: number;
  /** Shards that stay float32 because a value is no float16. */
  readonly notRepresentable: number;
}

/**
 * Gives a built index what it lacks. Row numbers, scores and generation stay. New files are made beside the old ones, the
 * shard's manifest is replaced by rename, and only then what it no longer names is removed: a server that has the index
 * open keeps reading what it opened.
 *
 * @throws TrawlError INDEX_NOT_FOUND, BUILD_LOCKED while another process changes the index, DISK_FULL, OUTPUT_NOT_WRITABLE,
 * CANCELLED, errors of the index's files.
 */
export async function optimizeIndex(
  folder: string,
  kernel: Kernel,
  options: OptimizeOptions,
): Promise<OptimizeSummary> {
  readIndexManifest(folder);
  // An update that was begun may wait there: it is left as it is.
  const output = await OutputFolder.prepare(realpathSync(folder), true);
  try {
    return await optimizeShards(openIndexDirectory(output.final), kernel, options);
  } catch (error) {
    throw writeFailure(error, output.final);
  } finally {
    await output.discardIfEmpty();
  }
}

async function optimizeShards(
  directory: IndexDirectory,
  kernel: Kernel,
  options: OptimizeOptions,
): Promise<OptimizeSummary> {
  let codesMade = 0;
  let screensMade = 0;
  let screensOfNoUse = 0;
  let rewritten = 0;
  let notRepresentable = 0;
  for (const shard of directory.shards) {
    let manifest = shard.manifest;
    if (manifest.codes === null) {
      manifest = await withCodes(shard, manifest, kernel, options);
      codesMade++;
    }
    if (manifest.screen === undefined) {
      manifest = await withScreen(shard, manifest, kernel, options);
      if (manifest.screen?.path === SCREEN_FILE) screensMade++;
      else screensOfNoUse++;
    }
    if (options.float16 && manifest.vectors.some(({ dtype }) => dtype === 'float32')) {
      const smaller = await withFloat16(shard, manifest, kernel, options);
      if (smaller === null) notRepresentable++;
      else {
        manifest = smaller;
        rewritten++;
      }
    }
    if (manifest !== shard.manifest) {
      await writeJsonDurably(join(shard.folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
    }
    await removeUnnamed(shard, manifest);
    await syncFolder(shard.folder);
  }
  return { codesMade, screensMade, screensOfNoUse, rewritten, notRepresentable };
}

async function withCodes(
  shard: OpenedShard,
  manifest: ShardManifest,
  kernel: Kernel,
  options: OptimizeOptions,
): Promise<ShardManifest> {
  options.onStep(`codes of ${shard.folder}`);
  const path = join(shard.folder, CODES_FILE);
  const making = `${path}.tmp`;
  await makeCodes(making, vectorsOf(shard, manifest), kernel, progress(options, manifest));
  await rename(making, path);
  const record: FileRecord = {
    path: CODES_FILE,
    bytes: (await stat(path)).size,
    sha256: await sha256OfFile(path, options.signal),
  };
  // A screen belongs to the codes it was made with.
  const { screen: _, ...rest } = manifest;
  return { ...rest, codes: { path: CODES_FILE }, files: [...withoutFile(manifest, CODES_FILE), record] };
}

async function withScreen(
  shard: OpenedShard,
  manifest: ShardManifest,
  kernel: Kernel,
  options: OptimizeOptions,
): Promise<ShardManifest> {
  options.onStep(`screen of ${shard.folder}`);
  const { segments, dimension } = vectorsOf(shard, manifest);
  const rows = { rows: manifest.rows, dtype: segments[0]?.dtype ?? 'float32', segments };
  const making = `${SCREEN_FILE}.tmp`;
  const codes = within(shard.folder, manifest.codes!.path);
  const { signal } = options;
  const { screen, file } = await makeScreen(shard.folder, codes, { rows, dimension }, kernel, { making, signal });
  if (file === undefined) return { ...manifest, screen };
  await rename(join(shard.folder, making), join(shard.folder, SCREEN_FILE));
  return { ...manifest, screen, files: [...withoutFile(manifest, SCREEN_FILE), file] };
}

async function withFloat16(
  shard: OpenedShard,
  manifest: ShardManifest,
  kernel: Kernel,
  options: OptimizeOptions,
): Promise<ShardManifest | null> {
  options.onStep(`float16 rows of ${shard.folder}`);
  const path = join(shard.folder, FLOAT16_FILE);
  const making = `${path}.tmp`;
  await requireUnchangedVectors(shard, options.signal);
  const written = await rewriteFloat16(making, vectorsOf(shard, manifest), kernel, progress(options, manifest));
  if (written === null) return null;
  await rename(making, path);
  const record: FileRecord = { path: FLOAT16_FILE, bytes: written.fileBytes, sha256: written.sha256 };
  return {
    ...manifest,
    vectors: [{ ...written.segment, path: FLOAT16_FILE }],
    files: [...withoutFile(manifest, VECTORS_FILE), record],
  };
}

/** Files of ours that the manifest does not name, those of a run that was killed too. Adopted files are named. */
async function removeUnnamed({ folder }: OpenedShard, { files, vectors }: ShardManifest): Promise<void> {
  const named = new Set([...files, ...vectors].map(({ path }) => within(folder, path)));
  for (const name of [VECTORS_FILE, FLOAT16_FILE, CODES_FILE, SCREEN_FILE].flatMap((file) => [file, `${file}.tmp`])) {
    const path = join(folder, name);
    if (!named.has(path)) await rm(path, { force: true });
  }
}

function withoutFile(manifest: ShardManifest, path: string): FileRecord[] {
  return manifest.files.filter((file) => file.path !== path);
}

function vectorsOf(shard: OpenedShard, manifest: ShardManifest) {
  const segments: VectorSegment[] = manifest.vectors.map((segment) => ({
    ...segment,
    path: within(shard.folder, segment.path),
  }));
  return { segments, dimension: manifest.dimension, metric: manifest.metric };
}

function progress(options: OptimizeOptions, { rows: total }: ShardManifest) {
  return { signal: options.signal, onRows: (rows: number) => options.onRows?.(rows, total) };
}
