import Type from 'typebox';
import { ReadingRecord, UPDATE_KINDS } from './build-records.ts';
import { CorpusRecord, Count, FileRecord, Generation, MetricName, ModelRecord } from './schemas.ts';

export const INDEX_MANIFEST_FILE = 'manifest.json';

/**
 * Version of manifest.json.
 * - 1: first version.
 */
export const INDEX_MANIFEST_VERSION = 1;

/** The whole index: written last, by rename, so that a directory with it is complete. */
export const IndexManifest = Type.Object({
  format: Type.Literal('trawl-index'),
  version: Type.Literal(INDEX_MANIFEST_VERSION),
  /** Changes with any change of content: caches and clients may key on it. */
  generation: Generation,
  /** Rows of all shards, tombstones included. */
  rows: Count,
  dimension: Type.Integer({ minimum: 1 }),
  metric: MetricName,
  model: ModelRecord,
  /** Where the model's folder was given as a path: that path, relative to the index. A hint for who opens the index. */
  modelLocation: Type.Optional(Type.String({ minLength: 1 })),
  corpus: CorpusRecord,
  /** In row order, without gap or overlap. */
  shards: Type.Array(
    Type.Object({
      path: Type.String({ minLength: 1 }),
      firstRow: Count,
      rows: Count,
      generation: Generation,
    }),
  ),
  /**
   * Removed rows: a bitmap of one bit a row (bit `row % 8` of byte `floor(row / 8)`), set where the row is removed.
   * Row numbers stay. Null where nothing was removed.
   */
  tombstones: Type.Union([Type.Intersect([FileRecord, Type.Object({ rows: Count })]), Type.Null()]),
  /** How the index became what it is, where it was changed after it was built. */
  lastUpdate: Type.Optional(
    Type.Object({
      /** `update` and `append` as in `UPDATE_KINDS`; `remove`: passages were removed by their ids. */
      kind: Type.Enum([...UPDATE_KINDS, 'remove']),
      /** Generation before. */
      before: Generation,
      /** How the corpus of an `update` or `append` was read; null for `remove`. */
      reading: Type.Union([ReadingRecord, Type.Null()]),
    }),
  ),
  /** The program that wrote it. For people, not for decisions. */
  writer: Type.String(),
});
export type IndexManifest = Type.Static<typeof IndexManifest>;
