import Type from 'typebox';
import { Count } from '../../base/count.ts';
import { EndpointRecord } from '../../encoder/identity/endpoint-record.ts';
import {
  BEFORE_TRUNCATION,
  type ModelIdentity,
  POOLINGS,
  PRECISIONS,
  QUERY_TEMPLATES,
} from '../../encoder/identity/model-identity.ts';
import { isWritten } from '../../encoder/written-vectors.ts';
import { COLUMN_TYPES } from '../../engine/filter/column.ts';
import { ANALYSERS } from '../../engine/lexical/lexical-settings.ts';
import { METRICS } from '../../engine/metric.ts';

/** Parts of the manifests' schemas. Readers ignore unknown fields. */

export { Count };
export const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
export const Generation = Type.String({ pattern: '^[0-9a-f]{32}$' });
export const MetricName = Type.Enum([...METRICS]);

export const FileRecord = Type.Object({
  /** Relative to the manifest's folder, or absolute for an adopted file. */
  path: Type.String({ minLength: 1 }),
  bytes: Count,
  sha256: Sha256,
});
export type FileRecord = Type.Static<typeof FileRecord>;

/** Null if an endpoint does not say it. */
const TokenLimit = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()]);

export const ModelRecord = Type.Object({
  name: Type.String(),
  sha256: Sha256,
  architecture: Type.String(),
  dimension: Type.Integer({ minimum: 1 }),
  pooling: Type.Enum([...POOLINGS]),
  normalize: Type.Boolean(),
  similarity: MetricName,
  prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
  maxTokens: Type.Object({ query: TokenLimit, passage: TokenLimit }),
  precision: Type.Union([Type.Enum([...PRECISIONS]), Type.Null()]),
  batchInvariant: Type.Boolean(),
  queryTemplate: Type.Optional(Type.Enum([...QUERY_TEMPLATES])),
  fullDimension: Type.Optional(Type.Integer({ minimum: 1 })),
  beforeTruncation: Type.Optional(Type.Enum([...BEFORE_TRUNCATION])),
  sourceSha256: Type.Optional(Sha256),
  overrides: Type.Optional(Type.Array(Type.String())),
  endpoint: Type.Optional(EndpointRecord),
});

/** The corpus that the passages come from. */
export const CorpusRecord = Type.Object({
  files: Type.Array(
    Type.Object({
      /** File name without its folder, so that an index does not depend on the location of its corpus. */
      name: Type.String(),
      bytes: Count,
      sha256: Sha256,
      passages: Count,
    }),
  ),
  /** Unusable lines skipped with `--skip-bad-lines`. */
  skippedLines: Count,
  /** Passages with the id of an earlier passage. */
  duplicateIds: Count,
  /** Passages whose text was truncated to the encoder's limit. */
  truncatedPassages: Count,
  /** Template of the embedded text, with the columns of a row: `{contents}`, `{title} {text}`. */
  passageTemplate: Type.String(),
});
export type CorpusRecord = Type.Static<typeof CorpusRecord>;

/** A column of the corpus that filters can name. */
export const ColumnRecord = Type.Object({
  /** Its key in a corpus row, or a path of keys with dots. */
  name: Type.String({ minLength: 1 }),
  type: Type.Enum([...COLUMN_TYPES]),
});
export type ColumnRecord = Type.Static<typeof ColumnRecord>;

/** Settings of the inverted indexes. Searches without k1 and b of their own use those here. */
export const Bm25Record = Type.Object({
  analyser: Type.Enum([...ANALYSERS]),
  /** Version of the Unicode rules with which the analyser splits texts into words. */
  unicode: Type.String(),
  /** The packages that made the terms of a Snowball analyser, with their versions. */
  stemmer: Type.Optional(Type.String()),
  k1: Type.Number({ minimum: 0 }),
  b: Type.Number({ minimum: 0, maximum: 1 }),
  fields: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
});
export type Bm25Record = Type.Static<typeof Bm25Record>;

/**
 * Versions of manifest.json and shard.json.
 * - 1: first version.
 * - 2: without vectors, which earlier programs would misread.
 * - 3: vectors from an endpoint, which earlier programs would look for as a model folder.
 * - 4: vectors that clients wrote, whose model earlier programs would look for.
 */
export const MANIFEST_VERSIONS = { withVectors: 1, withoutVectors: 2, ofEndpoint: 3, written: 4 } as const;

/** The version of a manifest, index or shard, whose vectors come from `model`; null: it has none. */
export function manifestVersion(model: ModelIdentity | null) {
  if (model === null) return MANIFEST_VERSIONS.withoutVectors;
  if (model.endpoint !== undefined) return MANIFEST_VERSIONS.ofEndpoint;
  return isWritten(model) ? MANIFEST_VERSIONS.written : MANIFEST_VERSIONS.withVectors;
}

/** The fields that both manifests begin with. */
export const ManifestFields = {
  version: Type.Union([Type.Literal(1), Type.Literal(2), Type.Literal(3), Type.Literal(4)]),
  /** Changes whenever the content changes, and is the same for equal content: caches and clients may use it as a key. */
  generation: Generation,
  /** Deleted rows included. */
  rows: Count,
  /** Values per vector; 0 where there are none. */
  dimension: Count,
  /** Null without vectors. */
  metric: Type.Union([MetricName, Type.Null()]),
  /** The encoder of the vectors. Null where there are none: the passages are searched by BM25 only. */
  model: Type.Union([ModelRecord, Type.Null()]),
  corpus: CorpusRecord,
};
