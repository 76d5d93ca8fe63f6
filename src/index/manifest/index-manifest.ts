import Type from 'typebox';
import type { ModelIdentity } from '../../encoder/identity/model-identity.ts';
import { LEXICAL_FIELDS } from '../../engine/lexical/lexical-settings.ts';
import { ReadingRecord, UPDATE_TYPES } from './build-records.ts';
import {
  Bm25Record,
  ColumnRecord,
  CorpusRecord,
  Count,
  FileRecord,
  Generation,
  MetricName,
  ModelRecord,
} from './schemas.ts';

export const INDEX_MANIFEST_FILE = 'manifest.json';

/**
 * Version of manifest.json.
 * - 1: first version.
 * - 2: an index without vectors, which earlier programs would misread. Indexes with vectors stay at version 1.
 * - 3: an index whose vectors come from an endpoint, which earlier programs would look for as a model folder.
 */
export const INDEX_MANIFEST_VERSIONS = { withVectors: 1, withoutVectors: 2, ofEndpoint: 3 } as const;

/** The version of a manifest, index or shard, whose vectors come from `model`. */
export function versionFor(model: Pick<ModelIdentity, 'endpoint'> | null): keyof typeof INDEX_MANIFEST_VERSIONS {
  if (model === null) return 'withoutVectors';
  return model.endpoint === undefined ? 'withVectors' : 'ofEndpoint';
}

/** Describes the whole index. Written last, by rename, so a folder with this file is a complete index. */
export const IndexManifest = Type.Object({
  format: Type.Literal('trawl-index'),
  version: Type.Union([
    Type.Literal(INDEX_MANIFEST_VERSIONS.withVectors),
    Type.Literal(INDEX_MANIFEST_VERSIONS.withoutVectors),
    Type.Literal(INDEX_MANIFEST_VERSIONS.ofEndpoint),
  ]),
  /** Changes whenever the content changes: caches and clients may use it as a key. */
  generation: Generation,
  /** Rows of all shards, deleted ones included. */
  rows: Count,
  /** Values per vector; 0 where there are none. */
  dimension: Count,
  /** Null without vectors. */
  metric: Type.Union([MetricName, Type.Null()]),
  /** The encoder of the vectors. Null where there are none: the passages are searched by BM25 only. */
  model: Type.Union([ModelRecord, Type.Null()]),
  /** Path of the model's folder relative to the index, unless it came with Trawl. Searches find the encoder by it. */
  modelLocation: Type.Optional(Type.String({ minLength: 1 })),
  corpus: CorpusRecord,
  /** In row order, without gaps or overlaps. */
  shards: Type.Array(
    Type.Object({
      path: Type.String({ minLength: 1 }),
      firstRow: Count,
      rows: Count,
      generation: Generation,
    }),
  ),
  /**
   * The deleted rows as a bitmap with one bit per row (bit `row % 8` of byte `floor(row / 8)`). Deleted rows keep their
   * numbers. Null if no rows are deleted.
   */
  tombstones: Type.Union([Type.Intersect([FileRecord, Type.Object({ rows: Count })]), Type.Null()]),
  /** The inverted indexes for BM25. If present, every shard has them. */
  bm25: Type.Optional(
    Type.Object({
      made: Bm25Record,
      /**
       * Inverted indexes over the texts of the deleted rows, one per field. BM25 subtracts their counts from the counts of the
       * shards. Null if no row is deleted.
       */
      deleted: Type.Union([
        Type.Array(Type.Intersect([FileRecord, Type.Object({ field: Type.Enum([...LEXICAL_FIELDS]) })])),
        Type.Null(),
      ]),
    }),
  ),
  /** The columns for filters. Every shard has a file for each. Absent if there are none. */
  columns: Type.Optional(Type.Array(ColumnRecord)),
  /** The last change after the build. */
  lastUpdate: Type.Optional(
    Type.Object({
      /** `update` and `append` as in `UPDATE_TYPES`; `remove`: passages were deleted by id. */
      kind: Type.Enum([...UPDATE_TYPES, 'remove']),
      /** Generation before the change. A compaction keeps it. */
      before: Generation,
      /** How the corpus was read last: by this change, an earlier one or the build. Null if that is not known. */
      reading: Type.Union([ReadingRecord, Type.Null()]),
    }),
  ),
  /** Name and version of the program that wrote the manifest, for information. */
  writer: Type.String(),
});
export type IndexManifest = Type.Static<typeof IndexManifest>;
