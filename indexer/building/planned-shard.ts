import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PASSAGES_RECORD_FILE, PassagesRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE } from '../../src/index/manifest/shard-manifest.ts';
import type { ShardRange } from './shard-cut.ts';

/** A shard to build: its folder and its part of the corpus. */
export interface PlannedShard extends ShardRange {
  readonly folder: string;
}

/** A shard with stored passages; their number is known. */
export interface StoredShard extends PlannedShard {
  readonly rows: number;
  /** Number of its first row in the index. */
  readonly firstRow: number;
}

/** The record of a shard's stored passages. Undefined before they are stored, and once the shard is complete. */
export function storedPassages(folder: string): PassagesRecord | undefined {
  return readRecord(PassagesRecord, join(folder, PASSAGES_RECORD_FILE)) ?? undefined;
}

/** Whether the shard is complete. A complete shard is immutable. */
export function isComplete({ folder }: { readonly folder: string }): boolean {
  return existsSync(join(folder, SHARD_MANIFEST_FILE));
}

/** The shards of an index in row order, each with stored passages or complete. */
export function storedShards(places: readonly PlannedShard[]): StoredShard[] {
  let rowsBefore = 0;
  return places.map((place) => {
    const { rows } = storedPassages(place.folder) ?? readShardManifest(place.folder);
    const firstRow = rowsBefore;
    rowsBefore += rows;
    return { ...place, rows, firstRow };
  });
}

export function rowsOf(shards: readonly { readonly rows: number }[]): number {
  return shards.reduce((sum, { rows }) => sum + rows, 0);
}
