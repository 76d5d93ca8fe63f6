import { mkdir } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { type CorpusOptions, openCorpus } from '../corpus/open-corpus.ts';
import { parseTemplate } from '../corpus/passage-template.ts';
import type { TextEncoder } from '../src/embedding/text-encoder.ts';
import { TrawlError } from '../src/errors.ts';
import { generationOf } from '../src/manifest/generation.ts';
import { INDEX_MANIFEST_FILE, INDEX_MANIFEST_VERSION, type IndexManifest } from '../src/manifest/index-manifest.ts';
import { withChecksum } from '../src/manifest/manifest-checksum.ts';
import type { CorpusRecord } from '../src/manifest/schemas.ts';
import { SHARD_MANIFEST_FILE, SHARD_MANIFEST_VERSION, type ShardManifest } from '../src/manifest/shard-manifest.ts';
import { syncFolder, writeJsonDurably } from '../src/manifest/write-json.ts';
import { packageVersion } from '../src/package-root.ts';
import { type Duplicates, SqlitePassageWriter } from '../src/passages/sqlite-passage-writer.ts';
import type { Kernel } from '../src/vector-index/kernel.ts';
import type { OnProgress } from './build-events.ts';
import { type EncodeSummary, encodePassages } from './encode-passages.ts';
import { PASSAGES_FILE } from './index-files.ts';
import { OutputFolder } from './output-folder.ts';
import { ShardVectors, type WrittenShardVectors } from './shard-vectors.ts';
import { storePassages } from './store-passages.ts';
import { writeFailure } from './write-failure.ts';

export interface BuildOptions {
  /** Files and directories, in order. */
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  readonly encoder: TextEncoder;
  /** Folder of the encoder's model where it was given as a path, for who opens the index. */
  readonly modelFolder?: string | undefined;
  /** The engine that makes the first-pass codes; without it the index has none. */
  readonly kernel?: Kernel | undefined;
  /** Folder of the index. */
  readonly out: string;
  /** Replace an index at `out`. */
  readonly overwrite: boolean;
  /** How the text to embed is made of a row's columns (corpus/passage-template.ts). */
  readonly passageTemplate: string;
  /** Refuse a corpus in which two passages have the same id. */
  readonly uniqueIds: boolean;
  readonly onProgress: OnProgress;
  readonly signal?: AbortSignal;
}

export interface BuildSummary {
  readonly folder: string;
  readonly manifest: IndexManifest;
  readonly tokens: number;
  readonly skippedExamples: readonly string[];
  readonly duplicates: Duplicates;
  readonly passagesWithoutId: number;
  /** Milliseconds per stage. */
  readonly stageMs: { readonly read: number; readonly encode: number; readonly finish: number };
}

const SHARD_FOLDER = 'shard-00000';

/**
 * Corpus → index directory. Nothing is visible at `out` before all of it is written; a build that fails or is stopped
 * leaves what stood there.
 */
export async function buildIndex(options: BuildOptions): Promise<BuildSummary> {
  const { encoder, onProgress, signal } = options;
  const corpus = openCorpus(options.corpus, { ...options.corpusOptions, ...(signal === undefined ? {} : { signal }) });
  const template = parseTemplate(options.passageTemplate);
  const output = await OutputFolder.prepare(options.out, options.overwrite);
  const shardFolder = join(output.partial, SHARD_FOLDER);
  let passages: SqlitePassageWriter | undefined;
  let vectors: ShardVectors | undefined;
  try {
    await mkdir(shardFolder);
    passages = new SqlitePassageWriter(join(shardFolder, PASSAGES_FILE));
    const started = performance.now();
    const passagesSha256 = await storePassages(corpus, template, passages, { onProgress, signal });
    const duplicates = passages.duplicates();
    if (options.uniqueIds && duplicates.count > 0) throw duplicateIds(duplicates);

    const readDone = performance.now();
    const { dimension, similarity: metric } = encoder.identity;
    const shape = { rows: passages.rows, dimension, metric };
    vectors = await ShardVectors.create(shardFolder, shape, options.kernel);
    const encoded = await encodePassages(passages, template, encoder, vectors, { onProgress, signal });

    const encodeDone = performance.now();
    onProgress({ stage: 'finish', passages: passages.rows, totalPassages: passages.rows });
    passages.finish();
    const written = await vectors.finish();
    const record = corpusRecord(corpus.report, duplicates, encoded, options.passageTemplate);
    const shard = shardManifest(shape, encoder, record, passagesSha256, written);
    await output.checkOwner();
    await writeJsonDurably(join(shardFolder, SHARD_MANIFEST_FILE), withChecksum(shard));
    const manifest = indexManifest(shard, options);
    await writeJsonDurably(join(output.partial, INDEX_MANIFEST_FILE), withChecksum(manifest));
    await syncFolder(shardFolder);
    await output.publish();
    const stageMs = { read: readDone - started, encode: encodeDone - readDone, finish: performance.now() - encodeDone };
    const { skippedExamples } = corpus.report;
    const passagesWithoutId = passages.rowsWithoutId;
    return {
      folder: output.final,
      manifest,
      tokens: encoded.tokens,
      skippedExamples,
      duplicates,
      passagesWithoutId,
      stageMs,
    };
  } catch (error) {
    passages?.abandon();
    await vectors?.abandon();
    const failure = writeFailure(error, output.final);
    // Why a file could not be written may be that the folder has gone.
    if (failure !== error) await output.checkOwner();
    await output.discard();
    throw failure;
  }
}

function duplicateIds({ count, examples }: Duplicates): TrawlError {
  const lines = examples.map(({ id, lines }) => `${JSON.stringify(id)} on lines ${lines.join(', ')}`);
  return new TrawlError(
    'CORPUS_DUPLICATE_ID',
    `${count} passages have an id that an earlier one has: ${lines.join('; ')}. Make the ids unique, or leave out --unique-ids.`,
    { details: { count } },
  );
}

function corpusRecord(
  report: ReturnType<typeof openCorpus>['report'],
  duplicates: Duplicates,
  encoded: EncodeSummary,
  passageTemplate: string,
): CorpusRecord {
  return {
    files: report.files.map((file) => ({
      name: basename(file.path),
      bytes: file.readBytes,
      sha256: file.sha256!,
      passages: file.passages,
    })),
    skippedLines: report.skippedLines,
    duplicateIds: duplicates.count,
    truncatedPassages: encoded.truncatedPassages,
    passageTemplate,
  };
}

function shardManifest(
  { rows, dimension, metric }: Pick<ShardManifest, 'rows' | 'dimension' | 'metric'>,
  encoder: TextEncoder,
  corpus: CorpusRecord,
  passagesSha256: string,
  written: WrittenShardVectors,
): ShardManifest {
  const model = encoder.identity;
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
    passages: { path: PASSAGES_FILE, sha256: passagesSha256 },
    files: [...written.files],
  };
}

function indexManifest(shard: ShardManifest, { modelFolder, out }: BuildOptions): IndexManifest {
  return {
    format: 'trawl-index',
    version: INDEX_MANIFEST_VERSION,
    generation: generationOf(['index', shard.generation]),
    rows: shard.rows,
    dimension: shard.dimension,
    metric: shard.metric,
    model: shard.model,
    ...(modelFolder === undefined ? {} : { modelLocation: relative(resolve(out), resolve(modelFolder)) }),
    corpus: shard.corpus,
    shards: [{ path: SHARD_FOLDER, firstRow: 0, rows: shard.rows, generation: shard.generation }],
    tombstones: null,
    writer: `trawl ${packageVersion}`,
  };
}
