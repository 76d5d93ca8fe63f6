import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { TrawlError } from '../../base/errors.ts';
import { writeJsonDurably } from '../../base/system/durable-file.ts';
import { INDEX_MANIFEST_FILE, type IndexManifest } from './index-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from './shard-manifest.ts';

/** Writes or replaces the manifest of an index, by rename. */
export async function writeIndexManifest(folder: string, manifest: IndexManifest): Promise<void> {
  await writeJsonDurably(join(folder, INDEX_MANIFEST_FILE), withChecksum(manifest));
}

/** Writes or replaces the manifest of a shard, by rename. */
export async function writeShardManifest(folder: string, manifest: ShardManifest): Promise<void> {
  await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
}

/**
 * Adds the field `checksum`: the SHA-256 of the manifest's JSON text without this field. The manifest says how to read every
 * other file, so an undetected change in it would give wrong answers.
 */
export function withChecksum<Manifest extends object>(manifest: Manifest): Manifest & { checksum: string } {
  return { ...manifest, checksum: checksumOf(manifest) };
}

/**
 * Compares the checksum and removes it. Returns a manifest without a checksum unchanged.
 *
 * @throws TrawlError INDEX_MANIFEST_INVALID when the checksum differs.
 */
export function checkChecksum(file: string, json: unknown): unknown {
  if (typeof json !== 'object' || json === null || !('checksum' in json)) return json;
  const { checksum, ...manifest } = json;
  if (checksum === checksumOf(manifest)) return manifest;
  throw new TrawlError(
    'INDEX_MANIFEST_INVALID',
    `${file}: its checksum differs, so it was changed after it was written. Restore it, or remove its field "checksum" to ` +
      'keep the change.',
  );
}

function checksumOf(manifest: object): string {
  return createHash('sha256').update(JSON.stringify(manifest)).digest('hex');
}
