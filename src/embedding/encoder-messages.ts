import type { SerializedError } from '../errors.ts';
import type { ModelFolder } from './model-folder.ts';
import type { EncoderInput, TextKind, TruncateSide } from './text-encoder.ts';

/** What the pool and its worker threads say to each other. A worker has at most one chunk at a time. */
export interface WorkerSetup {
  readonly model: ModelFolder;
  /** See `RunGate`. */
  readonly gate: SharedArrayBuffer;
}

export type ToWorker =
  | {
      readonly type: 'encode';
      readonly inputs: readonly EncoderInput[];
      readonly kind: TextKind;
      readonly truncate: TruncateSide;
    }
  | { readonly type: 'close' };

export type FromWorker =
  /** `separator`: see `TextEncoder`. */
  | { readonly type: 'ready'; readonly separator: string | null }
  /** The model cannot be used; the worker ends. */
  | { readonly type: 'failed'; readonly error: SerializedError }
  | EncodedChunk;

/** The answer to `encode`; the buffers are transferred, not copied. */
export interface EncodedChunk {
  readonly type: 'encoded';
  /** Row-major, texts × dimension; zero where a text failed. */
  readonly vectors: Float32Array;
  /** Per text. */
  readonly tokens: Int32Array;
  /** Per text: its place in `CUTS`. */
  readonly cuts: Uint8Array;
  readonly failures: readonly { readonly index: number; readonly error: SerializedError }[];
  /** Time the worker spent on the chunk. */
  readonly elapsedMs: number;
}
