import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { packageVersion } from '../../src/base/package-root.ts';
import { syncFolder, writeFileDurably } from '../../src/base/system/durable-file.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { type IndexManifest, shardFields } from '../../src/index/manifest/index-manifest.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import type { ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import { writeIndexManifest } from '../../src/index/manifest/write-manifest.ts';
import { type IndexDirectory, openIndexDirectory, openShard } from '../../src/search/opening/index-directory.ts';
import { isUnusedDeletedTexts, writeDeletedTexts } from '../lexical/deleted-texts.ts';
import { removeAbandonedLexical } from '../lexical/lexical-records.ts';

const SHARD_NAME = /^shard-(\d{5,})$/;
const TOMBSTONES_NAME = /^tombstones-[0-9a-f]{32}\.bin(\.tmp)?$/;

export interface AddedShard {
  /** Name of its folder, before and after it is moved into the index. */
  readonly name: string;
  readonly manifest: ShardManifest;
}

/** A shard in an index manifest, without its place. */
export type ShardEntry = Omit<IndexManifest['shards'][number], 'firstRow'>;

export interface NextGeneration {
  readonly newShards: readonly AddedShard[];
  /** Deleted rows among the existing rows; the rows of new shards are live. Default: none. */
  readonly deletedRows?: RowBitmap;
  /** All shards in their new order. Default: the existing shards, then the new ones. */
  readonly allShards?: readonly ShardEntry[];
  readonly corpus: CorpusRecord;
  readonly lastUpdate: NonNullable<IndexManifest['lastUpdate']>;
}

/** The bitmap of deleted rows, extended by live new rows. */
export function withNewRows(deletedRows: RowBitmap, newRows: number): RowBitmap {
  const longer = new RowBitmap(deletedRows.rows + newRows);
  longer.bytes.set(deletedRows.bytes);
  return longer;
}

/**
 * Publishes the next generation of an index: moves the new shards in, writes the bitmap of deleted rows to a new file, and
 * replaces the manifest by rename, which makes the change visible. Does not touch the files of the old generation, so a
 * server that has the index open keeps working.
 *
 * @param from the folder with the new shards.
 */
export async function publishGeneration(
  { folder, manifest: before }: IndexDirectory,
  from: string,
  { newShards, deletedRows, allShards, corpus, lastUpdate }: NextGeneration,
): Promise<IndexManifest> {
  const added = newShards.map(({ name, manifest: { rows, generation } }) => ({ path: name, rows, generation }));
  const shards = allShards ?? [...before.shards, ...added];
  const rows = shards.reduce((sum, shard) => sum + shard.rows, 0);
  const deleted = withNewRows(deletedRows ?? new RowBitmap(0), rows - (deletedRows?.rows ?? 0));
  const deletedCount = deleted.count();
  const sha256 = createHash('sha256').update(deleted.bytes).digest('hex');
  const fields = shardFields(shards, deletedCount === 0 ? undefined : sha256);
  const path = `tombstones-${fields.generation}.bin`;
  const manifest: IndexManifest = {
    ...before,
    ...fields,
    corpus,
    tombstones: deletedCount === 0 ? null : { path, bytes: deleted.bytes.length, sha256, rows: deletedCount },
    bm25: before.bm25 && { made: before.bm25.made, deleted: null },
    lastUpdate,
    writer: `trawl ${packageVersion}`,
  };
  try {
    if (deletedCount > 0) await writeFileDurably(join(folder, path), deleted.bytes);
    for (const { name } of newShards) await rename(join(from, name), join(folder, name));
    await writeDeletedTexts(folder, manifest, deleted);
    await syncFolder(folder);
    // Check the new shards before the manifest names them: with a damaged shard, the index could not be opened.
    for (const { name } of newShards)
      openShard(folder, manifest, manifest.shards.find((shard) => shard.path === name)!);
    await writeIndexManifest(folder, manifest);
  } catch (error) {
    // The rename may have succeeded although the call failed, so read the manifest from the disk.
    if (readIndexManifest(folder).generation === before.generation) await moveShardsBack(folder, from, before);
    throw error;
  }
  openIndexDirectory(folder);
  return manifest;
}

/** Moves shards that the manifest does not name back to the folder they were built in. Requires the lock. */
export async function moveShardsBack(folder: string, to: string, manifest: IndexManifest): Promise<void> {
  for (const name of unnamedShards(folder, manifest)) {
    if (!existsSync(join(to, name))) await rename(join(folder, name), join(to, name));
  }
}

/**
 * Removes files of earlier generations: shards and bitmaps that the manifest does not name, and inverted indexes of a stopped
 * optimization. Called by the next change of the index, not right after a change, because a process may still be opening the
 * earlier generation.
 */
export async function removeLeftovers(folder: string, manifest: IndexManifest): Promise<void> {
  for (const name of unnamedShards(folder, manifest)) await rm(join(folder, name), { recursive: true, force: true });
  for (const name of readdirSync(folder)) {
    const isLeft = TOMBSTONES_NAME.test(name)
      ? name !== manifest.tombstones?.path
      : isUnusedDeletedTexts(name, manifest);
    if (isLeft) await rm(join(folder, name), { force: true });
  }
  await removeAbandonedLexical(folder, manifest);
}

export function nextShardNumber({ shards }: IndexManifest): number {
  const numbers = shards.map(({ path }) => Number(SHARD_NAME.exec(path)?.[1] ?? -1));
  return Math.max(shards.length - 1, ...numbers) + 1;
}

function unnamedShards(folder: string, { shards }: IndexManifest): string[] {
  const named = new Set(shards.map(({ path }) => path));
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && SHARD_NAME.test(entry.name) && !named.has(entry.name))
    .map(({ name }) => name);
}
