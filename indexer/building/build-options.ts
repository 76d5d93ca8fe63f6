import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { Column } from '../../src/engine/filter/column.ts';
import type { Bm25Settings } from '../../src/engine/lexical/lexical-settings.ts';
import type { Metric } from '../../src/engine/metric.ts';
import type { Kernel } from '../../src/engine/native/kernel.ts';
import type { OnProgress } from '../build-events.ts';
import type { StageTimes } from '../stage-clock.ts';
import type { PrecomputedVectors } from '../vectors/precomputed-vectors.ts';

export interface WorkOptions {
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

export interface BuildOptions extends WorkOptions {
  /** Replace an existing index. */
  readonly overwrite: boolean;
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
