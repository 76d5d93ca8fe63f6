import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINT_FILE, PASSAGES_RECORD_FILE, type PassagesRecord } from '../../src/manifest/build-records.ts';
import { generationOf } from '../../src/manifest/generation.ts';
import { withChecksum } from '../../src/manifest/manifest-checksum.ts';
import type { ModelIdentity } from '../../src/manifest/model-identity.ts';
import type { CorpusRecord } from '../../src/manifest/schemas.ts';
import { SHARD_MANIFEST_FILE, SHARD_MANIFEST_VERSION, type ShardManifest } from '../../src/manifest/shard-manifest.ts';
import { syncFolder, writeJsonDurably } from '../../src/manifest/write-json.ts';
import { duplicateIds } from '../../src/passages/duplicate-ids.ts';
import { PASSAGES_FILE } from '../index-files.ts';
import type { WrittenShardVectors } from './shard-vectors.ts';

export interface FinishedFiles {
  readonly shape: Pick<ShardManifest, 'rows' | 'dimension' | 'metric'>;
  readonly stored: PassagesRecord;
  readonly truncatedPassages: number;
  readonly written: WrittenShardVectors;
  readonly input: ShardManifest['input'];
  /** Of the build. */
  readonly context: {
    readonly encoder: { readonly identity: ModelIdentity };
    readonly corpusFiles: readonly Readonly<{ name: string; bytes: number; sha256: string }>[];
    readonly passageTemplate: string;
    readonly signal: AbortSignal | undefined;
  };
}

/** Puts the manifest of a shard in its place: from then on the shard counts. Its other files are durable. */
export async function writeShardManifest(folder: string, files: FinishedFiles): Promise<ShardManifest> {
  const manifest = manifestOf(folder, files);
  await syncFolder(folder);
  await writeJsonDurably(join(folder, SHARD_MANIFEST_FILE), withChecksum(manifest));
  await removeNotes(folder);
  return manifest;
}

/** What a complete shard does not need any more. */
export async function removeNotes(folder: string): Promise<void> {
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

function manifestOf(folder: string, files: FinishedFiles): ShardManifest {
  const { rows, dimension, metric } = files.shape;
  const { written, input } = files;
  const model = files.context.encoder.identity;
  const corpus = corpusRecord(folder, files);
  const passagesSha256 = files.stored.sha256;
  return {
    format: 'trawl-shard',
    version: SHARD_MANIFEST_VERSION,
    generation: generationOf([rows, dimension, metric, model, corpus.passageTemplate, passagesSha256, written.sha256]),
    rows,
    dimension,
    metric,
    model,
    corpus,
    vectors: written.vectors,
    codes: written.codes,
    ...(written.screen === undefined ? {} : { screen: written.screen }),
    passages: { path: PASSAGES_FILE, sha256: passagesSha256 },
    files: [...written.files],
    ...(input === undefined ? {} : { input }),
  };
}
