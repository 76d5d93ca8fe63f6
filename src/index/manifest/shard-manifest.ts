import Type from 'typebox';
import { isSameJson } from '../../base/objects.ts';
import { ReadingRecord } from './build-records.ts';
import type { IndexManifest } from './index-manifest.ts';
import { Bm25Record, ColumnRecord, Count, FileRecord, ManifestFields, MetricName, Sha256 } from './schemas.ts';

export const SHARD_MANIFEST_FILE = 'shard.json';

/** The inverted indexes of a shard, one per field. */
export const ShardLexical = Type.Object({
  made: Bm25Record,
  indexes: Type.Array(
    Type.Object({
      field: Type.String({ minLength: 1 }),
      path: Type.String({ minLength: 1 }),
      /** Rows with at least one token in the field. */
      documents: Count,
      tokens: Count,
      terms: Count,
      postings: Count,
    }),
  ),
});
export type ShardLexical = Type.Static<typeof ShardLexical>;

/** A column of a shard. */
export const ShardColumn = Type.Intersect([
  ColumnRecord,
  Type.Object({
    path: Type.String({ minLength: 1 }),
    /** Values of all rows. */
    values: Count,
    /** Different values of a column of strings; 0 for other types. */
    distinct: Count,
  }),
]);
export type ShardColumn = Type.Static<typeof ShardColumn>;

/**
 * Describes a shard: consecutive rows of an index, built by one process. A shard is immutable once this file exists. Its rows
 * count from 0, so it does not depend on its position in the index.
 */
export const ShardManifest = Type.Object({
  format: Type.Literal('trawl-shard'),
  ...ManifestFields,
  /** Byte ranges whose concatenation is the matrix of rows, row-major. A row may continue in the next range. */
  vectors: Type.Array(
    Type.Object({
      path: Type.String({ minLength: 1 }),
      offset: Count,
      bytes: Count,
      dtype: Type.Enum(['float32', 'float16']),
      /**
       * Set for an adopted file: the size of the whole file, the SHA-256 of this range, and the checksum of a sample of the
       * range (src/engine/vectors/sample-checksum.ts), which is compared whenever the index is opened.
       */
      adopted: Type.Optional(Type.Object({ fileBytes: Count, sha256: Sha256, sample: Sha256 })),
    }),
  ),
  /** The int8 codes; null if the shard has none. */
  codes: Type.Union([Type.Object({ path: Type.String({ minLength: 1 }) }), Type.Null()]),
  /**
   * The prefilter of the codes. `path` is null if a prefilter would not make searches faster; `reason` explains the decision.
   * Absent if this was never measured.
   */
  prefilter: Type.Optional(
    Type.Object({ path: Type.Union([Type.String({ minLength: 1 }), Type.Null()]), reason: Type.String() }),
  ),
  /** The inverted indexes for BM25. Absent if the index has no BM25. */
  bm25: Type.Optional(ShardLexical),
  /**
   * Inverted indexes with other settings, which will replace `bm25`. The index manifest decides which are read: a
   * shard may have both until all shards have the new ones.
   */
  nextBm25: Type.Optional(ShardLexical),
  /**
   * The columns for filters. The index manifest decides which are read: while columns are added or removed, a shard may have more.
   */
  columns: Type.Optional(Type.Array(ShardColumn)),
  /**
   * The passage file. `sha256` is its content hash, which the file contains, too. The bytes of the file, unlike its content,
   * depend on whether the build was resumed.
   */
  passages: Type.Object({ path: Type.String({ minLength: 1 }), sha256: Sha256 }),
  /** Size and checksum of every file except the passage file. */
  files: Type.Array(FileRecord),
  /**
   * The shard's part of the corpus, by which merging orders the shards: input positions [first, end) of `positions`, and how
   * they were read. A position is a line or Parquet row, counted from 0 over all corpus files. Absent in shards from
   * pipes, in shards that an update added, and in shards that a compaction rewrote.
   */
  input: Type.Optional(
    Type.Object({
      first: Count,
      end: Count,
      positions: Count,
      shards: Count,
      reading: ReadingRecord,
      /**
       * The vector files that a job used instead of embedding. They contain the vectors of the whole corpus. `sample` is the
       * sample checksum of the whole file.
       */
      vectors: Type.Optional(
        Type.Object({
          use: Type.Enum(['adopt', 'copy']),
          metric: MetricName,
          rows: Count,
          files: Type.Array(Type.Object({ name: Type.String(), bytes: Count, sample: Sha256 })),
        }),
      ),
      /** As in `IndexManifest`. */
      modelLocation: Type.Optional(Type.String()),
    }),
  ),
});
export type ShardManifest = Type.Static<typeof ShardManifest>;

/** The inverted indexes of a shard that the index reads; undefined if it reads none, or if the shard lacks them. */
export function shardLexical(
  { bm25, nextBm25 }: ShardManifest,
  index: Pick<IndexManifest, 'bm25'>,
): ShardLexical | undefined {
  const made = index.bm25?.made;
  return made && [bm25, nextBm25].find((lexical) => isSameJson(lexical?.made, made));
}
