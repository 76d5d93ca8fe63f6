import Type from 'typebox';
import { ReadingRecord } from './build-records.ts';
import { CorpusRecord, Count, FileRecord, Generation, MetricName, ModelRecord, Sha256 } from './schemas.ts';

export const SHARD_MANIFEST_FILE = 'shard.json';

/**
 * Version of shard.json.
 * - 1: first version.
 */
export const SHARD_MANIFEST_VERSION = 1;

/**
 * A shard is what one builder makes alone; it is immutable once this file is there. It knows nothing of its place in an
 * index: rows are counted from 0.
 */
export const ShardManifest = Type.Object({
  format: Type.Literal('trawl-shard'),
  version: Type.Literal(SHARD_MANIFEST_VERSION),
  /** Derived from the content: equal shards have equal generations. */
  generation: Generation,
  rows: Count,
  dimension: Type.Integer({ minimum: 1 }),
  metric: MetricName,
  model: ModelRecord,
  corpus: CorpusRecord,
  /** The rows as runs of bytes, one after another; a boundary may lie inside a row. */
  vectors: Type.Array(
    Type.Object({
      path: Type.String({ minLength: 1 }),
      offset: Count,
      bytes: Count,
      dtype: Type.Enum(['float32', 'float16']),
      /**
       * Of a file that was adopted where it lies: its size as a whole, SHA-256 over these bytes, and the checksum of a sample
       * of them (src/vector-index/sample-checksum.ts), which is looked at whenever the index is opened.
       */
      adopted: Type.Optional(Type.Object({ fileBytes: Count, sha256: Sha256, sample: Sha256 })),
    }),
  ),
  /** The first-pass codes; null where they were not made. Their mean vector stands in the file's own header. */
  codes: Type.Union([Type.Object({ path: Type.String({ minLength: 1 }) }), Type.Null()]),
  /**
   * The screen before the codes: `path` null where none was made, with the reason either way. Absent where nobody has looked
   * whether one would pay.
   */
  screen: Type.Optional(
    Type.Object({ path: Type.Union([Type.String({ minLength: 1 }), Type.Null()]), reason: Type.String() }),
  ),
  /**
   * The passage file. Its bytes depend on how a build went (resumed or not), its content does not: `sha256` is the
   * content hash that the file itself carries too.
   */
  passages: Type.Object({ path: Type.String({ minLength: 1 }), sha256: Sha256 }),
  /** Every file of the shard but the passage file, with what it must be. */
  files: Type.Array(FileRecord),
  /**
   * What the shard's place among the others is told by when they are joined: the input positions [first, end) of
   * `positions` that it was made from (a position is a line or Parquet row, over all corpus files, from 0), and how they
   * were read. Absent in shards of earlier programs and of corpora that came through a pipe.
   */
  input: Type.Optional(
    Type.Object({
      first: Count,
      end: Count,
      positions: Count,
      shards: Count,
      reading: ReadingRecord,
      /**
       * Where a job did not embed but took vectors from files: those of the whole, of which the shard has its part. `sample` is
       * the sample checksum of the whole file.
       */
      vectors: Type.Optional(
        Type.Object({
          use: Type.Enum(['adopt', 'copy']),
          metric: MetricName,
          rows: Count,
          files: Type.Array(Type.Object({ name: Type.String(), bytes: Count, sample: Sha256 })),
        }),
      ),
      /** For the index's manifest, whose field of this name says what it is. */
      modelLocation: Type.Optional(Type.String()),
    }),
  ),
});
export type ShardManifest = Type.Static<typeof ShardManifest>;
