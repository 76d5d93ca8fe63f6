import type { SerializedError } from '../errors.ts';
import type { ModelFolder } from './model-folder.ts';
import type { EncoderInput, TextKind, TruncateSide } from './text-encoder.ts';
import type { QueryAndPassage } from './text-pair.ts';

/** A text to embed or a pair to score. */
export type WorkInput = EncoderInput | QueryAndPassage;

/** How one worker runs its model. */
export interface WorkerDevice {
  /** CUDA device; null: the CPU. */
  readonly cudaDevice: number | null;
  /** See `OnnxSessionOptions`. */
  readonly shareWeights: boolean;
  /** Whether grouping is tried (`grouping-trial.ts`) before the worker is ready, and not with its first group. */
  readonly triesFirst: boolean;
  /** Tokens in one run, padding counted, of texts sorted by length; null: texts run unpadded, alone or with others of their length. */
  readonly batchTokens: number | null;
}

/** What the pool and its worker threads say to each other. A worker has at most one chunk at a time. */
export interface WorkerSetup {
  readonly model: ModelFolder;
  readonly device: WorkerDevice;
  /** See `RunGate`. */
  readonly gate: SharedArrayBuffer;
}

/** Texts that are encoded alike. */
export interface WorkPart {
  readonly inputs: readonly WorkInput[];
  readonly kind: TextKind;
  readonly truncate: TruncateSide;
}

export type ToWorker =
  | {
      readonly type: 'encode';
      readonly parts: readonly WorkPart[];
      /** Texts that are not in the parts, whose tokens are to be counted first; answered by `counted` unless there are none. */
      readonly uncounted: readonly WorkPart[];
    }
  | { readonly type: 'close' };

export type FromWorker =
  /** `separator`: see `TextEncoder`. */
  | { readonly type: 'ready'; readonly separator: string | null }
  /** The model cannot be used; the worker ends. */
  | { readonly type: 'failed'; readonly error: SerializedError }
  /** Per text of `uncounted`, 0 where it could not be tokenised. */
  | { readonly type: 'counted'; readonly tokens: Int32Array }
  | EncodedChunk;

/** The answer to `encode`, for the texts of all parts one after another; the buffers are transferred, not copied. */
export interface EncodedChunk {
  readonly type: 'encoded';
  /** Row-major, inputs × values per input; zero where one failed. */
  readonly vectors: Float32Array;
  /** Per text. */
  readonly tokens: Int32Array;
  /** Per text: its place in `CUTS`. */
  readonly cuts: Uint8Array;
  readonly failures: readonly { readonly index: number; readonly error: SerializedError }[];
  /** Whether texts of equal length can run together without a change of bits; null: not tried yet. */
  readonly groups: boolean | null;
  /** Time the worker spent on the parts. */
  readonly elapsedMs: number;
}

/** Values per input: what a row of the answer is wide. */
export function valuesPerInput(model: ModelFolder): number {
  return model.kind === 'cross-encoder' ? (model.labels ?? 1) : model.identity.dimension;
}
