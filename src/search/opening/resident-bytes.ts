import { statSync } from 'node:fs';
import { type OpenedShard, prefilterPath, within } from './index-directory.ts';

/**
 * Bytes of a shard that every search reads in full, and that should stay in memory: its prefilter, else its codes, else its
 * vectors.
 */
export function residentBytes(shard: OpenedShard): number {
  const { manifest, folder } = shard;
  if (manifest.codes === null) return manifest.vectors.reduce((sum, { bytes }) => sum + bytes, 0);
  return statSync(prefilterPath(shard) ?? within(folder, manifest.codes.path)).size;
}
