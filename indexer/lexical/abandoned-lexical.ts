import { rm } from 'node:fs/promises';
import { isSameJson } from '../../src/base/objects.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { shardLexical } from '../../src/index/manifest/shard-lexical.ts';
import { writeShardManifest } from '../../src/index/manifest/write-manifest.ts';
import { within } from '../../src/search/opening/index-directory.ts';
import { pathsOf, withLexical } from './lexical-records.ts';

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
    const kept = new Set(pathsOf(current));
    for (const path of [...pathsOf(shard.bm25), ...pathsOf(shard.nextBm25)]) {
      if (!kept.has(path)) await rm(within(shardFolder, path), { force: true });
    }
  }
}
