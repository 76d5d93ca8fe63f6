import { statSync } from 'node:fs';
import { type Static, Type } from 'typebox';
import { orNull } from '../../base/or-null.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { shardLexical } from '../../index/manifest/shard-manifest.ts';
import { type IndexDirectory, type OpenedShard, within } from './index-directory.ts';

const Bytes = Type.Integer({ description: '0 if the shard has none.' });

/** How an index was made, by its manifests, and how large the parts of its shards are. */
export const IndexDescription = Type.Object({
  corpus: Type.Object({
    files: Type.Array(Type.Object({ name: Type.String(), bytes: Type.Integer(), passages: Type.Integer() }), {
      description: 'The first 20 files of the corpus.',
    }),
    fileCount: Type.Integer({ description: 'All files of the corpus.' }),
    passages: Type.Integer({ description: 'Passages of all files.' }),
    skippedLines: Type.Integer({ description: 'Bad lines that the build skipped.' }),
    duplicateIds: Type.Integer({ description: 'Passages with the id of an earlier one.' }),
    truncatedPassages: Type.Integer({ description: 'Passages that were truncated to the token limit.' }),
    passageTemplate: Type.String({ description: 'Template of the embedded text.' }),
  }),
  encoder: orNull(
    Type.Object({
      pooling: orNull(Type.String(), 'Null if an endpoint embeds.'),
      normalize: Type.Boolean(),
      precision: orNull(Type.String(), 'Null if it is not known.'),
    }),
    'Null for an index without vectors.',
  ),
  lastUpdate: orNull(
    Type.String(),
    'The last change after the build: update, append or remove; null if there was none.',
  ),
  writer: Type.String({ description: 'Name and version of the program that wrote the manifest.' }),
  shards: Type.Array(
    Type.Object({
      firstRow: Type.Integer(),
      rows: Type.Integer({ description: 'Deleted rows included.' }),
      deletedRows: Type.Integer(),
      dtype: orNull(Type.String(), 'Number format of the vectors: float32 or float16; null without vectors.'),
      adopted: Type.Boolean({ description: 'Whether the vectors are in a file of another program.' }),
      prefilter: orNull(Type.String(), 'Why the shard has a prefilter, or none; null if that was never measured.'),
      bytes: Type.Object({
        vectors: Bytes,
        codes: Bytes,
        prefilter: Bytes,
        words: Bytes,
        columns: Bytes,
        passages: Bytes,
      }),
    }),
    { description: 'In row order.' },
  ),
});
export type IndexDescription = Static<typeof IndexDescription>;

/** Files of the corpus that a description names; a corpus may have ten thousand. */
const NAMED_FILES = 20;

export function describeIndex({ manifest, shards, liveRows }: IndexDirectory): IndexDescription {
  const { corpus, lastUpdate, writer, model } = manifest;
  return {
    corpus: {
      files: corpus.files.slice(0, NAMED_FILES).map(({ name, bytes, passages }) => ({ name, bytes, passages })),
      fileCount: corpus.files.length,
      passages: corpus.files.reduce((sum, { passages }) => sum + passages, 0),
      skippedLines: corpus.skippedLines,
      duplicateIds: corpus.duplicateIds,
      truncatedPassages: corpus.truncatedPassages,
      passageTemplate: corpus.passageTemplate,
    },
    encoder: model && {
      pooling: model.endpoint === undefined ? model.pooling : null,
      normalize: model.normalize,
      precision: model.precision,
    },
    lastUpdate: lastUpdate?.kind ?? null,
    writer,
    shards: shards.map((shard) => {
      const { firstRow, manifest: own } = shard;
      const live = liveRows?.countIn(firstRow, firstRow + own.rows) ?? own.rows;
      return { firstRow, rows: own.rows, deletedRows: own.rows - live, ...describeFiles(shard, manifest) };
    }),
  };
}

function describeFiles(
  { folder, manifest: own }: OpenedShard,
  index: IndexManifest,
): Pick<IndexDescription['shards'][number], 'dtype' | 'adopted' | 'prefilter' | 'bytes'> {
  const sizes = new Map(own.files.map(({ path, bytes }) => [path, bytes]));
  const sizeOf = (paths: readonly (string | null | undefined)[]): number =>
    paths.reduce((sum, path) => sum + (sizes.get(path ?? '') ?? 0), 0);
  const columns = (own.columns ?? []).filter(({ name }) => index.columns?.some((column) => column.name === name));
  return {
    dtype: own.vectors[0]?.dtype ?? null,
    adopted: own.vectors.some(({ adopted }) => adopted !== undefined),
    prefilter: own.prefilter?.reason ?? null,
    bytes: {
      vectors: own.vectors.reduce((sum, { bytes }) => sum + bytes, 0),
      codes: sizeOf([own.codes?.path]),
      prefilter: own.codes === null ? 0 : sizeOf([own.prefilter?.path]),
      words: sizeOf((shardLexical(own, index)?.indexes ?? []).map(({ path }) => path)),
      columns: sizeOf(columns.map(({ path }) => path)),
      // The manifest does not have the size of the passage file.
      passages: statSync(within(folder, own.passages.path), { throwIfNoEntry: false })?.size ?? 0,
    },
  };
}
