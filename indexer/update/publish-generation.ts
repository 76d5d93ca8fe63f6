import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { generationOf } from '../../src/manifest/generation.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from '../../src/manifest/index-manifest.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import { readIndexManifest } from '../../src/manifest/read-manifest.ts';
import type { CorpusRecord } from '../../src/manifest/schemas.ts';
import type { ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { syncFolder, writeFileDurably, writeJsonDurably } from '../../src/manifest/write-json.ts';
import { packageVersion } from '../../src/package-root.ts';
import { type IndexDirectory, openIndexDirectory, openShard } from '../../src/retrieval/index-directory.ts';
import { RowBitmap } from '../../src/vector-index/row-bitmap.ts';

const SHARD_NAME = /^shard-(\d{5,})$/;
const TOMBSTONES_NAME = /^tombstones-[0-9a-f]{32}\.bin(\.tmp)?$/;

export interface AddedShard {
  /** Name of its folder, now and within the index. */
  readonly name: string;
  readonly manifest: ShardManifest;
}

export interface NextGeneration {
  readonly shards: readonly AddedShard[];
  /** Rows of the index as it is that are removed then: those of new shards are not. Default: none. */
  readonly removedRows?: RowBitmap;
  /** All shards in their new order, whatever their `firstRow`. Default: those that are there, then the new ones. */
  readonly entries?: IndexManifest['shards'];
  readonly corpus: CorpusRecord;
  readonly lastUpdate: NonNullable<IndexManifest['lastUpdate']>;
}

/** The bitmap with room for new rows, which are not removed. */
export function withNewRows(removedRows: RowBitmap, newRows: number): RowBitmap {
  const removed = new RowBitmap(removedRows.rows + newRows);
  removed.bytes.set(removedRows.bytes);
  return removed;
}

function shardsOf(before: IndexManifest, { shards, entries }: NextGeneration): IndexManifest['shards'] {
  const added = shards.map(({ name, manifest: { rows, generation } }) => ({
    path: name,
    firstRow: 0,
    rows,
    generation,
  }));
  return entries ?? [...before.shards, ...added];
}

function nextManifest(before: IndexManifest, next: NextGeneration, removed: RowBitmap): IndexManifest {
  let rows = 0;
  const shards = shardsOf(before, next).map((entry) => {
    const firstRow = rows;
    rows += entry.rows;
    return { ...entry, firstRow };
  });
  const removedCount = removed.count();
  const sha256 = createHash('sha256').update(removed.bytes).digest('hex');
  const generation = generationOf([
    'index',
    ...shards.map((shard) => shard.generation),
    ...(removedCount === 0 ? [] : ['tombstones', sha256]),
  ]);
  const path = `tombstones-${generation}.bin`;
  return {
    ...before,
    generation,
    rows,
    corpus: next.corpus,
    shards,
    tombstones: removedCount === 0 ? null : { path, bytes: removed.bytes.length, sha256, rows: removedCount },
    lastUpdate: next.lastUpdate,
    writer: `trawl ${packageVersion}`,
  };
}

/**
 * Makes an index its next generation: new shards are moved in, the bitmap of removed rows gets a name of its own, and the
 * manifest that names them takes the old one's place by one rename. Nothing that the old manifest names is touched, so who
 * has the index open goes on, and until the rename the index is the old one.
 *
 * @param from the folder in which the new shards are.
 */
export async function publishGeneration(
  { folder, manifest: before }: IndexDirectory,
  from: string,
  next: NextGeneration,
): Promise<IndexManifest> {
  const rows = shardsOf(before, next).reduce((sum, shard) => sum + shard.rows, 0);
  const removed =
    next.removedRows === undefined ? new RowBitmap(rows) : withNewRows(next.removedRows, rows - next.removedRows.rows);
  const manifest = nextManifest(before, next, removed);
  try {
    if (manifest.tombstones !== null) {
      await writeFileDurably(join(folder, manifest.tombstones.path), removed.bytes);
    }
    for (const { name } of next.shards) await rename(join(from, name), join(folder, name));
    await syncFolder(folder);
    // A manifest that names a shard of another kind would leave an index that nobody can open.
    for (const { name } of next.shards) openShard(folder, manifest, manifest.shards.find(({ path }) => path === name)!);
    await writeJsonDurably(join(folder, INDEX_MANIFEST_FILE), withChecksum(manifest));
  } catch (error) {
    // Whatever the last call says, the manifest that stands there decides.
    if (readIndexManifest(folder).generation === before.generation) await takeBack(folder, from, before);
    throw error;
  }
  openIndexDirectory(folder);
  return manifest;
}

/** Shards in an index that its manifest does not name go back to where they were made; to be done under the lock. */
export async function takeBack(folder: string, to: string, manifest: IndexManifest): Promise<void> {
  for (const name of unnamedShards(folder, manifest)) {
    if (!existsSync(join(to, name))) await rename(join(folder, name), join(to, name));
  }
}

/**
 * Removes what earlier updates left in an index: shards that no manifest names, and bitmaps but that of this generation.
 * The one before it stays until the next update, for who was just opening it.
 */
export async function removeLeftovers(folder: string, manifest: IndexManifest): Promise<void> {
  for (const name of unnamedShards(folder, manifest)) await rm(join(folder, name), { recursive: true, force: true });
  for (const name of readdirSync(folder)) {
    if (TOMBSTONES_NAME.test(name) && name !== manifest.tombstones?.path) await rm(join(folder, name), { force: true });
  }
}

/** Numbers of new shards begin here. */
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
