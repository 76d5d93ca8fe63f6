import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder, writeJsonDurably } from '../../src/base/system/durable-file.ts';
import { CHECKPOINT_FILE, PASSAGES_RECORD_FILE, type PassagesRecord } from '../../src/index/manifest/build-records.ts';
import { generationOf } from '../../src/index/manifest/generation.ts';
import { versionFor } from '../../src/index/manifest/index-manifest.ts';
import { withChecksum } from '../../src/index/manifest/manifest-checksum.ts';
import type { CorpusRecord } from '../../src/index/manifest/schemas.ts';
import {
  SHARD_MANIFEST_FILE,
  SHARD_MANIFEST_VERSIONS,
  type ShardManifest,
} from '../../src/index/manifest/shard-manifest.ts';
import type { VectorSpace } from '../../src/index/manifest/vector-space.ts';
import { duplicateIds } from '../../src/index/passages/duplicate-ids.ts';
import type { WrittenColumns } from '../columns/make-columns.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { WrittenLexical } from '../lexical/make-lexical.ts';
import type { WrittenShardVectors } from './shard-vectors.ts';

export interface FinishedFiles {
  readonly rows: number;
  /** Undefined for a shard without vectors. */
  readonly vectors: { readonly space: VectorSpace; readonly written: WrittenShardVectors } | undefined;
  readonly stored: PassagesRecord;
  readonly truncatedPassages: number;
  readonly lexical: WrittenLexical | undefined;
  readonly columns: WrittenColumns;
  readonly input: ShardManifest['input'];
  readonly context: {
    readonly corpusFiles: readonly Readonly<{ name: string; bytes: number; sha256: string }>[];
    readonly passageTemplate: string;
    readonly signal: AbortSignal | undefined;
  };
}

/** Completes a shard by writing its manifest. Its other files must already be synced to the disk. */
export async function writeShardManifest(folder: string, files: FinishedFiles): Promise<ShardManifest> {
  const manifest = manifestOf(folder, files);
  await syncFolder(folder);
  await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
  await removeBuildRecords(folder);
  return manifest;
}

/** Removes the records that only an unfinished shard needs. */
export async function removeBuildRecords(folder: string): Promise<void> {
  for (const name of [CHECKPOINT_FILE, PASSAGES_RECORD_FILE]) await rm(join(folder, name), { force: true });
}

function corpusRecord(folder: string, { stored, truncatedPassages, context }: FinishedFiles): CorpusRecord {
  const { corpusFiles, passageTemplate, signal } = context;
  return {
    files: corpusFiles.map(({ name, bytes, sha256 }, i) => ({
      name,
      bytes,
      sha256,
      passages: stored.passagesByFile[i] ?? 0,
    })),
    skippedLines: stored.skippedLines,
    duplicateIds: duplicateIds([join(folder, PASSAGES_FILE)], { exampleCount: 0, signal }).count,
    truncatedPassages,
    passageTemplate,
  };
}

const NO_SPACE = { model: null, metric: null, dimension: 0 } as const;
const NO_VECTORS: WrittenShardVectors = { vectors: [], codes: null, files: [], sha256: '' };

function manifestOf(folder: string, files: FinishedFiles): ShardManifest {
  const { rows, vectors, lexical, columns, input } = files;
  const { model, metric, dimension } = vectors?.space ?? NO_SPACE;
  const written = vectors?.written ?? NO_VECTORS;
  const corpus = corpusRecord(folder, files);
  const passagesSha256 = files.stored.sha256;
  return {
    format: 'trawl-shard',
    version: SHARD_MANIFEST_VERSIONS[versionFor(model)],
    generation: generationOf([rows, dimension, metric, model, corpus.passageTemplate, passagesSha256, written.sha256]),
    rows,
    dimension,
    metric,
    model,
    corpus,
    vectors: written.vectors,
    codes: written.codes,
    prefilter: written.prefilter,
    bm25: lexical?.bm25,
    ...(columns.columns.length === 0 ? {} : { columns: columns.columns }),
    passages: { path: PASSAGES_FILE, sha256: passagesSha256 },
    files: [...written.files, ...(lexical?.files ?? []), ...columns.files],
    input,
  };
}
