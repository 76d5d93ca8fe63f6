import type { CorpusOptions } from '../../corpus/open-corpus.ts';
import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import type { Metric } from '../../src/metric.ts';
import type { Kernel } from '../../src/vector-index/kernel.ts';
import type { OnProgress } from '../build-events.ts';
import type { GivenVectors } from '../vectors/given-vectors.ts';
import type { StageTimes } from '../stage-clock.ts';

export interface BuildOptions {
  /** Files and directories, in order. */
  readonly corpus: readonly string[];
  readonly corpusOptions: CorpusOptions;
  readonly encoder: TextEncoder;
  /** Vectors that are there already: nothing is embedded then, and the encoder says whose they are. */
  readonly vectors?: GivenVectors | undefined;
  /** How rows are compared where vectors are embedded. Default: the model's way. */
  readonly metric?: Metric | undefined;
  /** Folder of the encoder's model where it was given as a path, for who opens the index. */
  readonly modelFolder?: string | undefined;
  /** The engine that makes the first-pass codes; without it the index has none. */
  readonly kernel?: Kernel | undefined;
  /** Folder of the index. */
  readonly out: string;
  /** Replace an index at `out`. */
  readonly overwrite: boolean;
  /** Remove what a build that was stopped has done, in place of going on with it. Default false. */
  readonly restart?: boolean | undefined;
  /** How the text to embed is made of a row's columns (corpus/passage-template.ts). */
  readonly passageTemplate: string;
  /** Refuse a corpus in which two passages have the same id. */
  readonly uniqueIds: boolean;
  /** Most rows of a shard. Default a million. */
  readonly shardRows?: number | undefined;
  /** Milliseconds between checkpoints: what a killed build does again. Default 5,000; 0: after every batch. */
  readonly checkpointMs?: number | undefined;
  readonly onProgress: OnProgress;
  readonly onNote?: ((text: string) => void) | undefined;
  /** Ends the build with CANCELLED after the batch in hand; what is done is kept. */
  readonly signal?: AbortSignal | undefined;
}

/** What a build of the whole and of a shard tell alike. */
export interface WorkSummary {
  readonly folder: string;
  /** Embedded by this process. */
  readonly tokens: number;
  /** Rows that had vectors from earlier runs of the same build. */
  readonly resumedRows: number;
  readonly skippedExamples: readonly string[];
  readonly passagesWithoutId: number;
  readonly stageMs: StageTimes;
}
