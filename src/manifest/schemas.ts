import Type from 'typebox';
import { METRICS } from '../metric.ts';
import { POOLINGS, PRECISIONS } from './model-identity.ts';

/** Building blocks of the manifests' schemas. Fields that a reader does not know are ignored. */

export const Count = Type.Integer({ minimum: 0 });
export const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' });
export const Generation = Type.String({ pattern: '^[0-9a-f]{32}$' });
export const MetricName = Type.Enum([...METRICS]);

export const FileRecord = Type.Object({
  /** Relative to the folder of the manifest, or absolute for a file that was adopted where it lies. */
  path: Type.String({ minLength: 1 }),
  bytes: Count,
  sha256: Sha256,
});
export type FileRecord = Type.Static<typeof FileRecord>;

export const ModelRecord = Type.Object({
  name: Type.String(),
  sha256: Sha256,
  architecture: Type.String(),
  dimension: Type.Integer({ minimum: 1 }),
  pooling: Type.Enum([...POOLINGS]),
  normalize: Type.Boolean(),
  similarity: MetricName,
  prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
  maxTokens: Type.Object({ query: Type.Integer({ minimum: 1 }), passage: Type.Integer({ minimum: 1 }) }),
  precision: Type.Enum([...PRECISIONS]),
  batchInvariant: Type.Boolean(),
  fullDimension: Type.Optional(Type.Integer({ minimum: 1 })),
  sourceSha256: Type.Optional(Sha256),
  overrides: Type.Optional(Type.Array(Type.String())),
});

/** What the passages were made from. */
export const CorpusRecord = Type.Object({
  files: Type.Array(
    Type.Object({
      /** Name of the file as it was given, without its folder: an index does not depend on where its corpus lay. */
      name: Type.String(),
      bytes: Count,
      sha256: Sha256,
      passages: Count,
    }),
  ),
  /** Lines that could not be used and were left out (`--skip-bad-lines`). */
  skippedLines: Count,
  /** Passages whose id an earlier one already has. */
  duplicateIds: Count,
  /** Passages with more tokens than the encoder takes, whose tail was not embedded. */
  truncatedPassages: Count,
  /** How the embedded text is made of a row's columns: `{contents}`, `{title} {text}`. */
  passageTemplate: Type.String(),
});
export type CorpusRecord = Type.Static<typeof CorpusRecord>;
