import { readFileSync } from 'node:fs';
import Type from 'typebox';
import { Check } from 'typebox/schema';
import { isNodeError } from '../errors.ts';
import { Count, Generation, MetricName, ModelRecord, Sha256 } from './schemas.ts';

/**
 * Notes that a build makes for its own resumption. They stand beside what they describe, are written durably (a
 * temporary file, then a rename) after what they vouch for is on the disk, and are gone from a finished index.
 */

/** In the folder of the build (of a shard that is built alone: in that). What it was begun with. */
export const BUILD_FILE = 'build.json';

/** How corpus files are read; null where the names of the files or their first lines decide. */
export const ReadingRecord = Type.Object({
  format: Type.Union([Type.String(), Type.Null()]),
  tsvLayout: Type.String(),
  tsvIdType: Type.String(),
  skipBadLines: Type.Boolean(),
});
export type ReadingRecord = Type.Static<typeof ReadingRecord>;

/** Corpus files as a scan finds them. */
const ScannedCorpus = Type.Array(Type.Object({ name: Type.String(), bytes: Count, sha256: Sha256, positions: Count }));

export const BuildRecord = Type.Object({
  format: Type.Literal('trawl-build'),
  version: Type.Literal(1),
  model: ModelRecord,
  passageTemplate: Type.String(),
  reading: ReadingRecord,
  /** Shards that the input positions are cut into. */
  shards: Type.Integer({ minimum: 1 }),
  /** Null for a corpus that can be read only once (a pipe): such a build begins anew. */
  corpus: Type.Union([ScannedCorpus, Type.Null()]),
  /** Where vectors are not embedded but taken from files: how, and from which. */
  vectors: Type.Optional(
    Type.Object({
      use: Type.Enum(['adopt', 'copy']),
      metric: MetricName,
      dtype: Type.Enum(['float32', 'float16']),
      rows: Count,
      files: Type.Array(Type.Object({ path: Type.String(), bytes: Count, modifiedMs: Type.Number() })),
    }),
  ),
});
export type BuildRecord = Type.Static<typeof BuildRecord>;

/** How an index is brought up to a corpus: `update` makes it hold that corpus and nothing else, `append` removes nothing. */
export const UPDATE_KINDS = ['update', 'append'] as const;
export type UpdateKind = (typeof UPDATE_KINDS)[number];

/** In BUILD_FILE's place where an index is being updated. */
export const UpdateRecord = Type.Object({
  format: Type.Literal('trawl-update'),
  version: Type.Literal(1),
  kind: Type.Enum([...UPDATE_KINDS]),
  /** Generation of the index that is updated. */
  before: Generation,
  reading: ReadingRecord,
  /** Most rows of a new shard. */
  shardRows: Type.Integer({ minimum: 1 }),
  corpus: ScannedCorpus,
});
export type UpdateRecord = Type.Static<typeof UpdateRecord>;

/** Beside the record of an update: the index and the corpus have been compared. */
export const CHANGES_FILE = 'changes.json';

export const ChangesRecord = Type.Object({
  /** Passages of the corpus that the index has already, and of these how many it had removed. */
  kept: Count,
  restored: Count,
  /** Passages of the corpus that the index lacks. */
  added: Count,
  /** Passages of the index that the corpus lacks. */
  removed: Count,
  passagesByFile: Type.Array(Count),
  skippedLines: Count,
  skippedExamples: Type.Array(Type.String()),
  /** SHA-256 of the two bitmaps: input positions to add, and rows of the index that are removed then. */
  addedSha256: Sha256,
  removedSha256: Sha256,
});
export type ChangesRecord = Type.Static<typeof ChangesRecord>;

/** In the folder of a shard: its passage file is complete. */
export const PASSAGES_RECORD_FILE = 'passages.json';

export const PassagesRecord = Type.Object({
  rows: Count,
  rowsWithoutId: Count,
  /** Content hash. */
  sha256: Sha256,
  /** Of each corpus file. */
  passagesByFile: Type.Array(Count),
  skippedLines: Count,
  skippedExamples: Type.Array(Type.String()),
});
export type PassagesRecord = Type.Static<typeof PassagesRecord>;

/** In the folder of a shard: vectors up to here are on the disk. */
export const CHECKPOINT_FILE = 'checkpoint.json';

export const CheckpointRecord = Type.Object({
  rows: Count,
  /** SHA-256 of the vector file up to these rows. */
  sha256: Sha256,
  tokens: Count,
  truncatedPassages: Count,
});
export type CheckpointRecord = Type.Static<typeof CheckpointRecord>;

/** The record; undefined where there is none. Null where there is a file that is none of ours. */
export function readRecord<Schema extends Type.TSchema>(
  schema: Schema,
  path: string,
): Type.Static<Schema> | undefined | null {
  try {
    const json: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Check(schema, json) ? (json as Type.Static<Schema>) : null;
  } catch (error) {
    if (isNodeError(error) && error.code === 'ENOENT') return undefined;
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
