import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import type { VerifyProblem } from './verify-problem.ts';
import type { SampleReport } from './verify-sample.ts';

export interface VerifyOptions {
  /** Check only manifests, sizes and headers. */
  readonly quick?: boolean;
  /** Passages to embed again, and to analyse again where there are inverted indexes. Default: 0. */
  readonly sample?: number;
  /** See `SampleOptions`. */
  readonly largestDistance?: number;
  /** Opens the model of the index. Called at most once, only if there are passages to embed. */
  readonly openEncoder?: (folder: string, manifest: IndexManifest) => Promise<TextEncoder>;
  /** Open the model first, and fail without it. */
  readonly requireEncoder?: boolean;
  readonly onProgress?: (progress: VerifyProgress) => void;
  readonly signal?: AbortSignal;
}

interface VerifyProgress {
  /** The current step, such as `codes of <folder>`. */
  readonly step: string;
  readonly doneBytes: number;
  /** Counts a file once for each check that reads it. */
  readonly totalBytes: number;
}

export interface VerifyReport {
  readonly problems: readonly VerifyProblem[];
  /** Sentences about checks that could not be made. */
  readonly notChecked: readonly string[];
  readonly rows: number;
  readonly shards: number;
  /** Null if no passage was embedded again. */
  readonly sample: Omit<SampleReport, 'problems'> | null;
  /** Passages analysed again. Null without inverted indexes or a sample. */
  readonly analysed: number | null;
}
