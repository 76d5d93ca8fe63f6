import { join } from 'node:path';
import { writeJsonDurably } from '../../base/system/durable-file.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from './index-manifest.ts';
import { withChecksum } from './manifest-checksum.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from './shard-manifest.ts';

/** Writes or replaces the manifest of an index, by rename. */
export async function writeIndexManifest(folder: string, manifest: IndexManifest): Promise<void> {
  await writeJsonDurably(join(folder, INDEX_MANIFEST_FILE), withChecksum(manifest));
}

/** Writes or replaces the manifest of a shard, by rename. */
export async function writeShardManifest(folder: string, manifest: ShardManifest): Promise<void> {
  await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
}
