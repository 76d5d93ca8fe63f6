import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { type CorpusFile, listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import { type PassageTemplate, parseTemplate } from '../../corpus/passage-template.ts';
import { type CorpusScan, scanCorpus } from '../../corpus/scan-corpus.ts';
import { bug } from '../../src/base/errors.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { ReadingRecord } from '../../src/index/manifest/build-records.ts';
import type { VectorSpace } from '../../src/index/manifest/vector-space.ts';
import type { OnProgress } from '../build-events.ts';
import { StageClock, type StageTimes } from '../stage-clock.ts';
import type { PrecomputedVectors } from '../vectors/precomputed-vectors.ts';

/** What a build, a job or an update is asked for. */
export interface BuildOptions {
  /** Files and folders, in order. */
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  /** Undefined for an index without vectors: `bm25` is required then. */
  readonly encoder: TextEncoder | undefined;
  /** Vectors to use instead of embedding. `encoder` is the model that made them. */
  readonly vectors?: PrecomputedVectors;
  /** Metric of embedded vectors. Default: the model's. */
  readonly metric?: Metric;
  /** Folder of the model, unless it comes with Trawl. The index records it, so that searches find the model in any working directory. */
  readonly modelFolder?: string;
  /** The engine that makes codes and prefilters. Without it, the index has neither. */
  readonly kernel?: Kernel;
  /** Settings of the inverted indexes for BM25, which need the native engine. Absent: none are made. */
  readonly bm25?: Bm25Settings;
  /** Columns of the corpus for filters. Default: none. */
  readonly columns?: readonly Column[];
  /** Folder of the index. */
  readonly out: string;
  /** Replace an existing index. Default: false. */
  readonly overwrite?: boolean;
  /** Remove an unfinished build instead of resuming it. Default: false. */
  readonly restart?: boolean;
  /** Template of the text to embed, with the columns of a corpus row (corpus/passage-template.ts). */
  readonly passageTemplate: string;
  /** Make an inverted index of titles even if no passage has one. Default: false, such a corpus is rejected. */
  readonly mayLackTitles?: boolean;
  /** Reject a corpus with repeated ids. */
  readonly uniqueIds: boolean;
  /** Maximum rows per shard. Default: DEFAULT_SHARD_ROWS. */
  readonly shardRows?: number;
  /** Milliseconds between checkpoints; 0: after every batch. Default: DEFAULT_CHECKPOINT_MS. */
  readonly checkpointMs?: number;
  readonly onProgress: OnProgress;
  /** Called with warnings and notes. */
  readonly onNote?: (text: string) => void;
  /** Stops the build with CANCELLED after the current batch. The finished part is kept. */
  readonly signal?: AbortSignal;
}

/** Milliseconds between checkpoints. A killed build repeats the work since its last checkpoint. */
const DEFAULT_CHECKPOINT_MS = 5_000;
/** Maximum rows per shard: about 3 GB of vectors with 768 dimensions. */
const DEFAULT_SHARD_ROWS = 1_000_000;

/** A build with its defaults, and what follows from its options. Every step takes it whole. */
export class Build implements BuildOptions {
  readonly corpus: BuildOptions['corpus'];
  readonly corpusOptions: CorpusOptions;
  readonly encoder: TextEncoder | undefined;
  readonly vectors: PrecomputedVectors | undefined;
  readonly kernel: Kernel | undefined;
  readonly bm25: Bm25Settings | undefined;
  readonly columns: readonly Column[];
  readonly out: string;
  readonly overwrite: boolean;
  readonly restart: boolean;
  readonly passageTemplate: string;
  readonly mayLackTitles: boolean;
  readonly uniqueIds: boolean;
  readonly shardRows: number;
  readonly checkpointMs: number;
  readonly onProgress: OnProgress;
  readonly onNote: (text: string) => void;
  readonly signal: AbortSignal | undefined;
  /** The files of the corpus, in order. */
  readonly files: readonly CorpusFile[];
  readonly template: PassageTemplate;
  /** How the corpus is read, for the records. */
  readonly reading: ReadingRecord;
  /** Model, metric and dimension of the vectors; undefined for an index without vectors. */
  readonly space: VectorSpace | undefined;
  /** Path of the model's folder relative to the index. Undefined for a model that came with Trawl. */
  readonly modelLocation: string | undefined;
  /** The stage in which the rows of the shards are made. */
  readonly stage: 'encode' | 'vectors' | 'words';
  readonly clock = new StageClock();

  /** @throws TrawlError TEMPLATE_INVALID, and the errors of `listCorpusFiles`. */
  constructor(options: BuildOptions) {
    const { corpus, corpusOptions, encoder, vectors, modelFolder, out } = options;
    if (encoder === undefined && options.bm25 === undefined) throw bug('neither vectors nor words are indexed');
    const model = encoder?.identity;
    const metric = vectors?.metric ?? options.metric ?? model?.similarity;
    this.corpus = corpus;
    this.corpusOptions = corpusOptions;
    this.encoder = encoder;
    this.vectors = vectors;
    this.kernel = options.kernel;
    this.bm25 = options.bm25;
    this.columns = options.columns ?? [];
    this.out = out;
    this.overwrite = options.overwrite ?? false;
    this.restart = options.restart ?? false;
    this.passageTemplate = options.passageTemplate;
    this.mayLackTitles = options.mayLackTitles ?? false;
    this.uniqueIds = options.uniqueIds;
    this.shardRows = options.shardRows ?? DEFAULT_SHARD_ROWS;
    this.checkpointMs = options.checkpointMs ?? DEFAULT_CHECKPOINT_MS;
    this.onProgress = options.onProgress;
    this.onNote = options.onNote ?? (() => undefined);
    this.signal = options.signal;
    this.files = listCorpusFiles(corpus, corpusOptions.format);
    this.template = parseTemplate(options.passageTemplate);
    this.reading = readingRecord(corpusOptions);
    this.space = model && { model, metric: metric!, dimension: model.dimension };
    this.modelLocation = modelFolder === undefined ? undefined : relative(resolve(out), resolve(modelFolder));
    this.stage = encoder === undefined ? 'words' : vectors === undefined ? 'encode' : 'vectors';
  }
}

export function readingRecord(options: CorpusOptions): ReadingRecord {
  return {
    format: options.format ?? null,
    tsvLayout: options.tsvLayout ?? 'auto',
    tsvIdType: options.tsvIdType ?? 'auto',
    skipBadLines: options.skipBadLines ?? false,
  };
}

/** The checksum and the number of lines of every corpus file. Undefined for a pipe, which can be read only once. */
export async function scanFiles({ files, clock, onProgress, signal }: Build): Promise<CorpusScan | undefined> {
  clock.start('scan');
  if (files.some(({ path }) => !statSync(path).isFile())) return undefined;
  const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  onProgress({ stage: 'scan', passages: 0, readShare: 0 });
  return scanCorpus(files, {
    signal,
    onBytes: (bytes) => onProgress({ stage: 'scan', passages: 0, readShare: Math.min(1, bytes / total) }),
  });
}

/** The result of a build or a job. */
export interface WorkSummary {
  /** Absolute path of the index, or of the shard. */
  readonly folder: string;
  /** Tokens that this process embedded. */
  readonly tokens: number;
  /** Rows whose vectors come from earlier runs of the same build. */
  readonly resumedRows: number;
  /** Messages about the first skipped lines. */
  readonly skippedExamples: readonly string[];
  readonly passagesWithoutId: number;
  readonly stageMs: StageTimes;
}
