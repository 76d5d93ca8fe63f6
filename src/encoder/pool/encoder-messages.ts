import type { SerializedError } from '../../base/errors.ts';
import type { ModelFolder } from '../model/model-folder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import type { TokenizeOptions } from '../tokenizer/truncation.ts';

/** How one worker runs its model; see `OnnxSessionOptions`. */
export interface WorkerDevice {
  readonly cudaDevice: number | null;
  readonly shareWeights: boolean;
  /** Whether the worker runs the grouping trial (`grouping-trial.ts`) before it is ready; if not, with its first group. */
  readonly triesGrouping: boolean;
  /** Tokens of a padded batch, padding included; null if texts run unpadded, alone or with texts of equal length. */
  readonly batchTokens: number | null;
}

/** The data that a worker is started with. A worker has at most one chunk at a time. */
export interface WorkerSetup {
  readonly model: ModelFolder;
  readonly device: WorkerDevice;
  readonly gate: SharedArrayBuffer;
}

export interface WorkPart {
  readonly inputs: readonly WorkInput[];
  readonly tokenize: TokenizeOptions;
}

export type ToWorker =
  | {
      readonly type: 'encode';
      readonly parts: readonly WorkPart[];
      /** Texts that are not in `parts`. If there are any, the worker first counts their tokens and sends `counted`. */
      readonly uncounted: readonly WorkPart[];
      /** Threads that may divide the run, the worker's own included: more than 1 for a lone text while other workers are idle. */
      readonly threads: number;
      /** As in `WorkerDevice`, or less if the device ran out of memory for another worker's batch. */
      readonly batchTokens: number | null;
    }
  | { readonly type: 'close' };

export type FromWorker =
  /** `separator`: see `TextEncoder`. */
  | { readonly type: 'ready'; readonly separator: string | null }
  /** The model cannot be used, and the worker ends. */
  | { readonly type: 'failed'; readonly error: SerializedError }
  /** Tokens of each text of `uncounted`; 0 for a text that could not be tokenised. */
  | { readonly type: 'counted'; readonly tokens: Int32Array }
  | EncodedChunk;

/** The answer to `encode`, for the texts of all parts in order. The buffers are transferred, not copied. */
export interface EncodedChunk {
  readonly type: 'encoded';
  /** Row-major, inputs × values per input; zeros for a text that failed. */
  readonly vectors: Float32Array;
  readonly tokens: Int32Array;
  /** Per text: an index in `TRUNCATIONS`. */
  readonly truncations: Uint8Array;
  readonly failures: readonly { readonly index: number; readonly error: SerializedError }[];
  /** Whether texts of equal length get the same bits together as alone; null until the trial has run. */
  readonly canGroup: boolean | null;
  /** As in `WorkerDevice`, or less if the device ran out of memory for a batch. */
  readonly batchTokens: number | null;
  /** Time that the worker spent on the parts, in milliseconds. */
  readonly elapsedMs: number;
}
