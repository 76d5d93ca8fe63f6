import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { CorpusScan } from '../../corpus/scan-corpus.ts';
import type { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { PASSAGES_RECORD_FILE, PassagesRecord, readRecord } from '../../src/index/manifest/build-records.ts';
import { SHARD_MANIFEST_FILE, type ShardManifest } from '../../src/index/manifest/shard-manifest.ts';

export interface PlannedShard {
  /** Number of the shard, from 0. */
  readonly index: number;
  readonly folder: string;
  /** Its input positions are [first, end). */
  readonly first: number;
  readonly end: number;
  /** Number of its passages, if it is known before they are stored: in updates. */
  readonly rows?: number;
  /** The shard's part of the corpus, for its manifest. Shards without it cannot be joined with others. */
  readonly input?: ShardInput;
}

/** A shard with stored passages; their number is known. */
export interface StoredShard extends PlannedShard {
  readonly rows: number;
  /** Number of its first row in the index. */
  readonly firstRow: number;
}

export type ShardInput = NonNullable<ShardManifest['input']>;

/** The shards of a build, a job or an update, and what is read for them. */
export interface ShardPlan {
  /** Undefined for a pipe: it can be read only once, so it is hashed while its passages are stored, in one shard. */
  readonly scan: CorpusScan | undefined;
  readonly places: readonly PlannedShard[];
  /** Number of shards of the index or the update. A job builds only one of them. */
  readonly shards: number;
  /** Input positions to store. Default: all. */
  readonly only?: RowBitmap;
  /** Number of the first row of the first shard in the index. Default: 0. */
  readonly firstRow?: number;
}

/** The record of a shard's stored passages. Undefined before they are stored, and once the shard is complete. */
export function storedPassages(folder: string): PassagesRecord | undefined {
  return readRecord(PassagesRecord, join(folder, PASSAGES_RECORD_FILE)) ?? undefined;
}

/** Whether the shard is complete. A complete shard is immutable. */
export function isComplete({ folder }: { readonly folder: string }): boolean {
  return existsSync(join(folder, SHARD_MANIFEST_FILE));
}

export function totalRows(shards: readonly { readonly rows: number }[]): number {
  return shards.reduce((sum, { rows }) => sum + rows, 0);
}
