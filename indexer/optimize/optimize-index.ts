import { readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import { requireVectors } from '../../src/index/manifest/index-manifest.ts';
import type { FileRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import {
  type IndexDirectory,
  type OpenedShard,
  openIndexDirectory,
  within,
} from '../../src/search/opening/index-directory.ts';
import { OutputFolder } from '../building/output-folder.ts';
import { type ColumnChanges, changeColumns } from '../columns/change-columns.ts';
import { CODES_FILE, COLUMN_FILE, fileRecord, LEXICAL_FILE, PREFILTER_FILE, VECTORS_FILE } from '../index-files.ts';
import { addLexical } from '../lexical/add-lexical.ts';
import { isUnusedDeletedTexts } from '../lexical/deleted-texts.ts';
import { nativeRows, readCheckedRows, shardSegments } from '../vectors/read-segments.ts';
import { areCurrent, makeCodes, makePrefilter, rewriteFloat16 } from './derived-files.ts';

/** Name of the vector file of a shard whose rows are float16. */
const FLOAT16_FILE = 'vectors.f16.faiss';
/** What the names of temporary files have after the name of their file. */
const TEMPORARY_END = /\.tmp(?:\.run-\d+)?$/;

export interface OptimizeOptions {
  /** Store vectors as float16 if that is lossless. */
  readonly float16: boolean;
  /** Settings of the inverted indexes to make or replace; damaged ones are made again. Absent: they stay as they are. */
  readonly bm25?: Bm25Settings;
  /** Columns for filters to add, and the names of those to remove. Absent: they stay as they are. */
  readonly columns?: Pick<ColumnChanges, 'add' | 'drop'> | undefined;
  readonly onStep: (step: string) => void;
  readonly onRows?: (rows: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Numbers of shards. */
const NO_SHARDS = {
  codesMade: 0,
  prefiltersMade: 0,
  /** Shards whose searches a prefilter would not make faster. */
  prefiltersNotWorthwhile: 0,
  rewritten: 0,
  /** Shards that stay float32, because float16 cannot represent all values. */
  notRepresentable: 0,
  lexicalMade: 0,
  columnsMade: 0,
};
export type OptimizeSummary = typeof NO_SHARDS;

/**
 * Adds missing codes and prefilters to an index, replaces codes of earlier versions, and adds inverted indexes and columns if
 * asked. Row numbers, scores and generation do not change. A server that has the index open keeps working: new files are written
 * beside the old ones, then the manifest is replaced by rename, and only then are the unused files removed.
 *
 * @param kernel without it, only inverted indexes and columns are made.
 * @throws TrawlError INDEX_NOT_FOUND, BUILD_LOCKED while another process changes the index, DISK_FULL, OUTPUT_NOT_WRITABLE,
 * CANCELLED, errors of the index's files.
 */
export async function optimizeIndex(
  folder: string,
  kernel: Kernel | undefined,
  options: OptimizeOptions,
): Promise<OptimizeSummary> {
  // Only for its lock. An unfinished update in it stays.
  const output = await OutputFolder.prepareChange(folder);
  try {
    const { bm25, columns, onStep, signal } = options;
    const open = (): IndexDirectory => openIndexDirectory(output.final, { checkLexical: bm25 === undefined });
    const counts = { ...NO_SHARDS };
    if (kernel !== undefined) {
      for (const shard of open().shards) await optimizeShard(shard, kernel, options, counts);
    }
    if (bm25 !== undefined) counts.lexicalMade = await addLexical(open(), bm25, kernel, { onStep, signal });
    if (columns !== undefined) counts.columnsMade = await changeColumns(open(), { ...columns, onStep, signal });
    if (bm25 !== undefined || columns !== undefined) await removeAllUnnamed(output.final);
    return counts;
  } catch (error) {
    // The call has failed already, so what this throws does not matter.
    await removeAllUnnamed(output.final).catch(() => undefined);
    if (!(error instanceof TrawlError) || error.code !== 'CANCELLED') throw writeFailure(error, output.final);
    throw new TrawlError('CANCELLED', 'Stopped. Finished shards are kept: run the same command again to resume.', {
      details: { resumable: true },
      cause: error,
    });
  } finally {
    await output.discardIfEmpty();
  }
}

async function optimizeShard(
  shard: OpenedShard,
  kernel: Kernel,
  options: OptimizeOptions,
  counts: OptimizeSummary,
): Promise<void> {
  let { manifest } = shard;
  // A shard without vectors has neither codes nor a prefilter.
  if (manifest.model === null) return;
  if (manifest.codes !== null) manifest = await withoutOlderCodes(shard, manifest);
  if (manifest.codes === null) {
    manifest = await withCodes(shard, manifest, kernel, options);
    counts.codesMade++;
  }
  if (manifest.prefilter === undefined) {
    manifest = await withPrefilter(shard, manifest, kernel, options);
    if (manifest.prefilter?.path === PREFILTER_FILE) counts.prefiltersMade++;
    else counts.prefiltersNotWorthwhile++;
  }
  if (options.float16 && manifest.vectors.some(({ dtype }) => dtype === 'float32')) {
    const smaller = await withFloat16(shard, manifest, kernel, options);
    if (smaller === undefined) counts.notRepresentable++;
    else {
      manifest = smaller;
      counts.rewritten++;
    }
  }
  if (manifest !== shard.manifest) await writeShardManifest(shard.folder, manifest);
  await removeUnnamed(shard, manifest);
  await syncFolder(shard.folder);
}

/**
 * Drops codes and prefilter of an earlier version, and those that do not belong together, from the shard's manifest, so that they
 * are made again. The manifest is written first: it never names files that do not belong together.
 */
async function withoutOlderCodes({ folder }: OpenedShard, manifest: ShardManifest): Promise<ShardManifest> {
  const { codes, prefilter, ...others } = manifest;
  const path = prefilter?.path ?? undefined;
  if (await areCurrent(within(folder, codes!.path), path && within(folder, path))) return manifest;
  const files = manifest.files.filter((file) => file.path !== codes!.path && file.path !== path);
  const without = { ...others, codes: null, files };
  await writeShardManifest(folder, without);
  return without;
}

/** Makes codes from the vectors. Returns a manifest without prefilter: a prefilter belongs to the codes it was made with. */
async function withCodes(
  { folder }: OpenedShard,
  { prefilter: _, ...manifest }: ShardManifest,
  kernel: Kernel,
  { onStep, onRows, signal }: OptimizeOptions,
): Promise<ShardManifest> {
  onStep(`codes of ${folder}`);
  const path = join(folder, CODES_FILE);
  const vectors = { segments: shardSegments({ folder, manifest }), ...requireVectors(folder, manifest) };
  await makeCodes(`${path}.tmp`, vectors, kernel, { signal, onRows: (done) => onRows?.(done, manifest.rows) });
  await rename(`${path}.tmp`, path);
  const files = [...withoutFile(manifest, CODES_FILE), await fileRecord(path, signal)];
  return { ...manifest, codes: { path: CODES_FILE }, files };
}

async function withPrefilter(
  { folder }: OpenedShard,
  manifest: ShardManifest,
  kernel: Kernel,
  { onStep, signal }: OptimizeOptions,
): Promise<ShardManifest> {
  onStep(`prefilter of ${folder}`);
  const fileName = `${PREFILTER_FILE}.tmp`;
  const { dimension, codes } = manifest;
  const vectors = { rows: nativeRows(manifest.rows, shardSegments({ folder, manifest })), dimension };
  const codesPath = within(folder, codes!.path);
  const { prefilter, files } = await makePrefilter(folder, codesPath, vectors, kernel, { fileName, signal });
  if (files.length === 0) return { ...manifest, prefilter };
  await rename(join(folder, fileName), join(folder, PREFILTER_FILE));
  return { ...manifest, prefilter, files: [...withoutFile(manifest, PREFILTER_FILE), ...files] };
}

/** Rewrites the vectors as float16. Undefined if float16 cannot represent a value. */
async function withFloat16(
  shard: OpenedShard,
  manifest: ShardManifest,
  kernel: Kernel,
  { onStep, onRows, signal }: OptimizeOptions,
): Promise<ShardManifest | undefined> {
  onStep(`float16 rows of ${shard.folder}`);
  const path = join(shard.folder, FLOAT16_FILE);
  const { rows } = manifest;
  const vectors = { rows, ...requireVectors(shard.folder, manifest), blocks: readCheckedRows(shard, signal) };
  const written = await rewriteFloat16(`${path}.tmp`, vectors, kernel, (done) => onRows?.(done, rows));
  if (written === undefined) return undefined;
  await rename(`${path}.tmp`, path);
  const record: FileRecord = { path: FLOAT16_FILE, bytes: written.fileBytes, sha256: written.sha256 };
  return {
    ...manifest,
    vectors: [{ ...written.segment, path: FLOAT16_FILE }],
    files: [...withoutFile(manifest, VECTORS_FILE), record],
  };
}

async function removeAllUnnamed(folder: string): Promise<void> {
  const { manifest, shards } = openIndexDirectory(folder, { checkLexical: false });
  for (const shard of shards) await removeUnnamed(shard, shard.manifest);
  for (const name of readdirSync(folder)) {
    if (isUnusedDeletedTexts(name, manifest)) await rm(join(folder, name), { force: true });
  }
}

/** Removes Trawl's files that the manifest does not name, including files of a killed run. Never removes adopted files. */
async function removeUnnamed({ folder }: OpenedShard, { files, vectors }: ShardManifest): Promise<void> {
  const named = new Set([...files, ...vectors].map(({ path }) => within(folder, path)));
  const vectorFiles = [VECTORS_FILE, FLOAT16_FILE, CODES_FILE, PREFILTER_FILE];
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const bare = name.replace(TEMPORARY_END, '');
    const isOurs = vectorFiles.includes(bare) || LEXICAL_FILE.test(bare) || COLUMN_FILE.test(name);
    if (isOurs && !named.has(path)) await rm(path, { force: true });
  }
}

function withoutFile({ files }: ShardManifest, path: string): FileRecord[] {
  return files.filter((file) => file.path !== path);
}
