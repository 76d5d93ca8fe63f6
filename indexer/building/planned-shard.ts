import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import { PASSAGES_RECORD_FILE, PassagesRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import { readShardManifest } from '../../src/index/manifest/read-manifest.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/index/manifest/shard-manifest.ts';
import type { Build } from './build.ts';

/** Input positions [first, end) of a shard. */
export interface ShardRange {
  /** Number of the shard, from 0. */
  readonly index: number;
  readonly first: number;
  readonly end: number;
}

/** A shard to build: its folder and its part of the corpus. */
export interface PlannedShard extends ShardRange {
  readonly folder: string;
}

/** A shard with stored passages; their number is known. */
export interface StoredShard extends PlannedShard {
  readonly rows: number;
  /** Number of its first row in the index. */
  readonly firstRow: number;
  /** The shard's part of the corpus, for its manifest. Shards without it cannot be joined with others. */
  readonly input?: ShardInput;
}

export type ShardInput = NonNullable<ShardManifest['input']>;

/** The smallest number of shards, at least 1, with at most `shardRows` positions each. */
export function shardCount(positions: number, shardRows: number): number {
  return Math.max(1, Math.ceil(positions / shardRows));
}

/**
 * Divides [0, positions) into ranges whose lengths differ by at most one. The result depends only on the two numbers, so jobs
 * need not communicate. Some ranges are empty if there are more shards than positions.
 */
export function cutPositions(positions: number, shards: number): ShardRange[] {
  const begin = (index: number): number => Number((BigInt(positions) * BigInt(index)) / BigInt(shards));
  return Array.from({ length: shards }, (_, index) => ({ index, first: begin(index), end: begin(index + 1) }));
}

/** The record of a shard's part of the corpus in its manifest, for `joinShards`. */
export function shardInput(
  { reading, modelLocation }: Build,
  { positions }: CorpusScan,
  { first, end }: ShardRange,
  shards: number,
): ShardInput {
  return { first, end, positions, shards, reading, modelLocation };
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
