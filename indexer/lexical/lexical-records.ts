import { rm } from 'node:fs/promises';
import { isSameJson } from '../../src/base/objects.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { type ShardLexical, type ShardManifest, shardLexical } from '../../src/index/manifest/shard-manifest.ts';
import { writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import { within } from '../../src/search/opening/index-directory.ts';

/** Whether the inverted indexes match the wanted settings. k1 and b do not affect the files. */
export function hasFilesOf(
  lexical: ShardLexical | undefined,
  { k1, b, ...files }: Bm25Settings,
): lexical is ShardLexical {
  if (lexical === undefined) return false;
  const { k1: _k1, b: _b, ...made } = lexical.made;
  return isSameJson(made, files);
}

/**
 * Replaces the inverted indexes of a shard's manifest: the first of `found` becomes `bm25`, the second `nextBm25`. The records of all
 * other inverted indexes' files go.
 */
export function withLexical(manifest: ShardManifest, ...found: readonly (ShardLexical | undefined)[]): ShardManifest {
  const { bm25, nextBm25, ...rest } = manifest;
  const [first, second] = found.filter((lexical) => lexical !== undefined);
  const kept = new Set([...lexicalPaths(first), ...lexicalPaths(second)]);
  const dropped = new Set([...lexicalPaths(bm25), ...lexicalPaths(nextBm25)].filter((path) => !kept.has(path)));
  const files = rest.files.filter(({ path }) => !dropped.has(path));
  return { ...rest, bm25: first, nextBm25: second, files };
}

export function lexicalPaths(lexical: ShardLexical | undefined): string[] {
  return lexical?.indexes.map(({ path }) => path) ?? [];
}

/**
 * Removes the inverted indexes of a stopped `trawl optimize --bm25`, which the index does not read. The same command then begins
 * again with the first shard. Requires the lock.
 */
export async function removeAbandonedLexical(folder: string, manifest: IndexManifest): Promise<void> {
  for (const entry of manifest.shards) {
    const shardFolder = within(folder, entry.path);
    const shard = readShardManifest(shardFolder);
    const current = shardLexical(shard, manifest);
    const changed = withLexical(shard, current);
    if (isSameJson(changed, shard)) continue;
    await writeShardManifest(shardFolder, changed);
    await removeUnusedLexical(shardFolder, [shard.bm25, shard.nextBm25], current);
  }
}

/** Removes the files of the `removed` inverted indexes, except the files that `kept` names. */
export async function removeUnusedLexical(
  folder: string,
  removed: readonly (ShardLexical | undefined)[],
  kept: ShardLexical | undefined,
): Promise<void> {
  const named = new Set(lexicalPaths(kept));
  for (const path of removed.flatMap(lexicalPaths)) {
    if (!named.has(path)) await rm(within(folder, path), { force: true });
  }
}
