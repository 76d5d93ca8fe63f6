import { statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { type CorpusOptions, openCorpus } from '../../corpus/open-corpus.ts';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { type CorpusScan, scanCorpus } from '../../corpus/scan-corpus.ts';
import { bug } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { ReadingRecord } from '../../src/index/manifest/build-records.ts';
import type { VectorSpace } from '../../src/index/manifest/index-manifest.ts';
import type { PrecomputedVectors } from '../vectors/precomputed-vectors.ts';
import { type BuildProgress, type OnProgress, StageClock, type StageTimes } from './stages.ts';

/** What the caller wants of a build, a job or an update. */
export interface BuildOptions {
  /** Files and folders, in order. */
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  /** Undefined for an index without vectors, which needs `bm25`. */
  readonly encoder: TextEncoder | undefined;
  /** Vectors to use instead of embedding. `encoder` is the model that made them. */
  readonly vectors?: PrecomputedVectors;
  /** Metric of embedded vectors. Default: the model's. */
  readonly metric?: Metric;
  /** Folder of the model, unless it comes with Trawl. The index records it, so that searches find the model in any working directory. */
  readonly modelFolder?: string;
  /** The engine that makes codes and prefilters. Without it, the index has neither. */
  readonly kernel?: Kernel;
  /** Settings of the inverted indexes for BM25. Absent: none are made. */
  readonly bm25?: Bm25Settings;
  /** Columns of the corpus for filters. Default: none. */
  readonly columns?: readonly Column[];
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
  /** Maximum rows per shard. Default: a million, about 3 GB of vectors with 768 dimensions. */
  readonly shardRows?: number;
  /** Milliseconds between checkpoints; 0: after every batch. A killed build repeats the work since the last checkpoint. Default: 5,000. */
  readonly checkpointMs?: number;
  readonly onProgress: OnProgress;
  readonly onNote?: (text: string) => void;
  /** Stops the build with CANCELLED after the current batch. The finished part is kept. */
  readonly signal?: AbortSignal;
}

const DEFAULTS = {
  columns: [],
  overwrite: false,
  restart: false,
  mayLackTitles: false,
  shardRows: 1_000_000,
  checkpointMs: 5_000,
  onNote: () => undefined,
} as const satisfies Partial<BuildOptions>;

/** A build: its options with their defaults, and what follows from them. Every step takes the build whole. */
export type Build = ReturnType<typeof resolveBuild>;

/** @throws TrawlError TEMPLATE_INVALID, and the errors of `openCorpus`. */
export function resolveBuild(options: BuildOptions) {
  const { corpusOptions, encoder, vectors, metric, modelFolder, out, signal } = options;
  if (encoder === undefined && options.bm25 === undefined) throw bug('neither vectors nor words are indexed');
  const model = encoder?.identity;
  const space: VectorSpace | undefined = model && {
    model,
    metric: vectors?.metric ?? metric ?? model.similarity,
    dimension: model.dimension,
  };
  const clock = new StageClock();
  return {
    ...DEFAULTS,
    ...defined(options),
    corpus: openCorpus(options.corpus, { ...corpusOptions, signal }),
    template: parseTemplate(options.passageTemplate),
    /** How the corpus is read, as manifests and records say it. */
    reading: readingRecord(corpusOptions),
    /** Model, metric and dimension of the vectors; undefined for an index without vectors. */
    space,
    /** Path of the model's folder relative to the index. Undefined for a model that came with Trawl. */
    modelLocation: modelFolder === undefined ? undefined : relative(resolve(out), resolve(modelFolder)),
    /** The stage in which the rows of the shards are made. */
    stage:
      encoder === undefined ? ('words' as const) : vectors === undefined ? ('encode' as const) : ('vectors' as const),
    clock,
    /** Reports the progress, and starts its stage on the clock. */
    onProgress: (progress: BuildProgress): void => {
      clock.start(progress.stage);
      options.onProgress(progress);
    },
  };
}

export function readingRecord(options: CorpusOptions): ReadingRecord {
  const columns = defined(options.columns);
  return {
    format: options.format ?? null,
    tsvLayout: options.tsvLayout ?? 'auto',
    tsvIdType: options.tsvIdType ?? 'auto',
    skipBadLines: options.skipBadLines ?? false,
    ...(Object.keys(columns).length > 0 && { columns }),
  };
}

/** The checksum and the number of lines of every corpus file. Undefined for a pipe, which can be read only once. */
export async function scanFiles({ corpus, onProgress, signal }: Build): Promise<CorpusScan | undefined> {
  const { files } = corpus;
  if (files.some(({ path }) => !statSync(path).isFile())) return undefined;
  const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const onBytes = (bytes: number): void =>
    onProgress({ stage: 'scan', passages: 0, readShare: Math.min(1, bytes / total) });
  onProgress({ stage: 'scan', passages: 0, readShare: 0 });
  return scanCorpus(files, { signal, onBytes });
}

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
