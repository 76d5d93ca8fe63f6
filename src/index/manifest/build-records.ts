import { readFileSync } from 'node:fs';
import Type from 'typebox';
import { Check } from 'typebox/schema';
import { isNodeError } from '../../base/errors.ts';
import { Bm25Record, ColumnRecord, Count, Generation, MetricName, ModelRecord, Sha256 } from './schemas.ts';

/**
 * Records that make a build resumable. Each is beside the files it describes, is written by rename once those files are on the
 * disk, and is deleted when the index is complete.
 */

/** The settings of a build: in the build folder, or in the shard's folder if a job builds only that shard. */
export const BUILD_FILE = 'build.json';

/** How corpus files are read. `format` is null if it follows from the file names. */
export const ReadingRecord = Type.Object({
  format: Type.Union([Type.String(), Type.Null()]),
  tsvLayout: Type.String(),
  tsvIdType: Type.String(),
  /** Names of columns that were given; absent for none. */
  columns: Type.Optional(
    Type.Object({
      id: Type.Optional(Type.String()),
      text: Type.Optional(Type.String()),
      title: Type.Optional(Type.String()),
    }),
  ),
  skipBadLines: Type.Boolean(),
});
export type ReadingRecord = Type.Static<typeof ReadingRecord>;

/** Corpus files as the scan found them. */
const ScannedCorpus = Type.Array(Type.Object({ name: Type.String(), bytes: Count, sha256: Sha256, positions: Count }));

export const BuildRecord = Type.Object({
  format: Type.Literal('trawl-build'),
  version: Type.Literal(1),
  /** Null if no vectors are made. */
  model: Type.Union([ModelRecord, Type.Null()]),
  passageTemplate: Type.String(),
  reading: ReadingRecord,
  /** Number of shards that the input positions are divided into. */
  shards: Type.Integer({ minimum: 1 }),
  /** Null for a pipe, which can be read only once: the build cannot be resumed. */
  corpus: Type.Union([ScannedCorpus, Type.Null()]),
  /** Absent if no inverted indexes are made. */
  bm25: Type.Optional(Bm25Record),
  /** Absent if no columns are made. */
  columns: Type.Optional(Type.Array(ColumnRecord)),
  /** Vector files used instead of embedding. */
  vectors: Type.Optional(
    Type.Object({
      use: Type.Enum(['adopt', 'copy']),
      metric: MetricName,
      dtype: Type.Enum(['float32', 'float16']),
      rows: Count,
      files: Type.Array(Type.Object({ path: Type.String(), bytes: Count, state: Type.String() })),
    }),
  ),
});
export type BuildRecord = Type.Static<typeof BuildRecord>;

/** How a corpus changes an index: `update` adds and deletes passages until both are equal, `append` only adds. */
export const UPDATE_TYPES = ['update', 'append'] as const;
export type UpdateType = (typeof UPDATE_TYPES)[number];

/** The content of BUILD_FILE while an index is updated. */
export const UpdateRecord = Type.Object({
  format: Type.Literal('trawl-update'),
  version: Type.Literal(1),
  kind: Type.Enum([...UPDATE_TYPES]),
  /** Generation of the index before the update. */
  before: Generation,
  reading: ReadingRecord,
  /** Maximum rows per new shard. */
  shardRows: Type.Integer({ minimum: 1 }),
  corpus: ScannedCorpus,
});
export type UpdateRecord = Type.Static<typeof UpdateRecord>;

/** What reading a corpus found. */
const ReadPassages = {
  /** One count per corpus file. */
  passagesByFile: Type.Array(Count),
  skippedLines: Count,
  skippedExamples: Type.Array(Type.String()),
};

/** Beside the update record: the result of comparing index and corpus. */
export const CHANGES_FILE = 'changes.json';

export const ChangesRecord = Type.Object({
  /** Passages of the corpus that the index already has. */
  kept: Count,
  /** Kept passages whose rows are deleted; the update restores them. */
  restored: Count,
  /** Passages of the corpus that the index lacks. */
  added: Count,
  /** Live rows that the update deletes, because the corpus lacks their passages. */
  removed: Count,
  ...ReadPassages,
  /** SHA-256 of the two bitmaps: input positions to add, and all rows that are deleted after the update. */
  addedSha256: Sha256,
  removedSha256: Sha256,
});
export type ChangesRecord = Type.Static<typeof ChangesRecord>;

/** In the shard's folder once its passage file is complete. */
export const PASSAGES_RECORD_FILE = 'passages.json';

export const PassagesRecord = Type.Object({
  rows: Count,
  rowsWithoutId: Count,
  /** Content hash. */
  sha256: Sha256,
  ...ReadPassages,
});
export type PassagesRecord = Type.Static<typeof PassagesRecord>;

/** In the shard's folder: the number of vectors on the disk. */
export const CHECKPOINT_FILE = 'checkpoint.json';

export const CheckpointRecord = Type.Object({
  rows: Count,
  /** SHA-256 of the vector file up to the last of these rows. */
  sha256: Sha256,
  tokens: Count,
  truncatedPassages: Count,
  /** Rows of stored passages without a vector, because the encoder refuses their texts; they leave the shard when it is complete. */
  refused: Type.Optional(Type.Array(Count)),
  /** Messages about the first of them. */
  refusedExamples: Type.Optional(Type.Array(Type.String())),
});
export type CheckpointRecord = Type.Static<typeof CheckpointRecord>;

/** Reads a record. Undefined if the file is missing, null if its content does not match the schema. */
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
