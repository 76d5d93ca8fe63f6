import { statSync } from 'node:fs';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { shardLexical } from '../../index/manifest/shard-lexical.ts';
import type { IndexDescription, ShardDescription } from '../retriever-info.ts';
import { type IndexDirectory, type OpenedShard, within } from './index-directory.ts';

/** Files of the corpus that a description names; a corpus may have ten thousand. */
const NAMED_FILES = 20;

/** What the manifests of an index say about how it was made, and how large the parts of its shards are. */
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
      return { firstRow, rows: own.rows, deletedRows: own.rows - live, ...partsOf(shard, manifest) };
    }),
  };
}

function partsOf(
  { folder, manifest: own }: OpenedShard,
  index: IndexManifest,
): Pick<ShardDescription, 'dtype' | 'adopted' | 'prefilter' | 'bytes'> {
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
