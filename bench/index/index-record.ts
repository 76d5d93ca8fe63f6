import type { StageTimes } from '../../indexer/building/stages.ts';

/** The measurement of a build. Null: does not apply. */
export interface IndexRecord {
  readonly case: 'index';
  /** `trawl`, or the baseline's name and version. */
  readonly engine: string;
  /** The model, or `none` if the build was measured without one. */
  readonly encoder: string;
  readonly rows: number;
  readonly dimension: number;
  readonly corpusBytes: number;
  readonly indexBytes: number;
  readonly codes: boolean;
  /** From opening the corpus to the finished index, synced to disk. The model is loaded before. */
  readonly seconds: number;
  readonly passagesPerS: number;
  /** Null for a baseline. */
  readonly stageMs: StageTimes | null;
  /** Time to write `indexBytes` bytes into one file on the same disk, with fsync. Null for a baseline. */
  readonly diskSeconds: number | null;
  /** Time to encode the same texts, measured just before Trawl's build or within the baseline's. Null without a model. */
  readonly encodeSeconds: number | null;
  readonly ratioToEncoding: number | null;
  /** Peak resident memory of the process, from its start to the end of the build. */
  readonly peakMemoryBytes: number;
  /** `passagesPerS` divided by the baseline's; null without a baseline. */
  readonly ratioToBaseline: number | null;
}
