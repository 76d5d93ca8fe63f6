import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import type { IndexManifest } from '../../src/manifest/index-manifest.ts';
import type { VerifyProblem } from './verify-problem.ts';
import type { SampleReport } from './verify-sample.ts';

export interface VerifyOptions {
  /** Manifests, sizes and headers alone: what is read does not grow with the index. */
  readonly quick?: boolean;
  /** Passages to embed again, [0, ∞). Default 0. */
  readonly sample?: number;
  /** Makes them; called once, where there is something to embed. */
  readonly openEncoder?: (folder: string, manifest: IndexManifest) => Promise<TextEncoder>;
  /** Opens it before anything else, and lets its error end the examination. */
  readonly requireEncoder?: boolean;
  readonly onProgress?: (progress: VerifyProgress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface VerifyProgress {
  /** What is being done, in a few words. */
  readonly step: string;
  readonly doneBytes: number;
  /** Bytes that are read in all; files that are read for several checks count for each. */
  readonly totalBytes: number;
}

export interface VerifyReport {
  readonly problems: readonly VerifyProblem[];
  /** What was to be checked and could not be, as sentences. */
  readonly notChecked: readonly string[];
  readonly rows: number;
  readonly shards: number;
  /** Null where no passage was embedded again. */
  readonly sample: Omit<SampleReport, 'problems'> | null;
}
