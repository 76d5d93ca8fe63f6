import { createHash } from 'node:crypto';
import Type from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import type { ModelIdentity } from '../../encoder/identity/model-identity.ts';
import type { Metric } from '../../engine/metric.ts';
import { ReadingRecord, UPDATE_TYPES } from './build-records.ts';
import { Bm25Record, ColumnRecord, Count, FileRecord, Generation, ManifestFields } from './schemas.ts';

export const INDEX_MANIFEST_FILE = 'manifest.json';

/** Describes the whole index. Written last, by rename, so a folder with this file is a complete index. */
export const IndexManifest = Type.Object({
  format: Type.Literal('trawl-index'),
  ...ManifestFields,
  /** Path of the model's folder relative to the index, unless it came with Trawl. Searches find the encoder by it. */
  modelLocation: Type.Optional(Type.String({ minLength: 1 })),
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
        Type.Array(Type.Intersect([FileRecord, Type.Object({ field: Type.String({ minLength: 1 }) })])),
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

/**
 * A hash that identifies the content of an index or shard: the first 32 hex digits of the SHA-256 of the facts as JSON text.
 * Equal builds have equal generations.
 */
export function generationOf(facts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 32);
}

/**
 * The fields of an index manifest that follow from the shards, in row order, and from the deleted rows.
 *
 * @param tombstones SHA-256 of the bitmap of the deleted rows; undefined if no row is deleted.
 */
export function shardFields(
  entries: readonly Omit<IndexManifest['shards'][number], 'firstRow'>[],
  tombstones?: string,
): Pick<IndexManifest, 'generation' | 'rows' | 'shards'> {
  let rows = 0;
  const shards = entries.map(({ path, rows: count, generation }) => {
    const firstRow = rows;
    rows += count;
    return { path, firstRow, rows: count, generation };
  });
  const deleted = tombstones === undefined ? [] : ['tombstones', tombstones];
  return {
    generation: generationOf(['index', ...shards.map(({ generation }) => generation), ...deleted]),
    rows,
    shards,
  };
}

/** What the vectors of an index or a shard have in common. */
export interface VectorSpace {
  readonly model: ModelIdentity;
  readonly metric: Metric;
  readonly dimension: number;
}

type MaybeVectors = Pick<IndexManifest, 'model' | 'metric' | 'dimension'>;

/** The vector space of an index or a shard; undefined if it has inverted indexes alone. */
export function vectorSpace({ model, metric, dimension }: MaybeVectors): VectorSpace | undefined {
  return model === null || metric === null ? undefined : { model, metric, dimension };
}

/** @throws TrawlError NOT_SUPPORTED for an index that has inverted indexes alone. */
export function requireVectors(folder: string, manifest: MaybeVectors): VectorSpace {
  const space = vectorSpace(manifest);
  if (space !== undefined) return space;
  throw new TrawlError(
    'NOT_SUPPORTED',
    `${folder}: the index has no vectors, only inverted indexes for BM25. Build it again with --model for vectors.`,
  );
}
