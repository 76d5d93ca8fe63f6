import type { SerializedError } from '../../base/errors.ts';
import type { TokenCut } from './cut-tokens.ts';

/** The data that the worker is started with. */
export interface CutWorkerSetup {
  readonly tokenizerPath: string;
}

export interface ToCutWorker {
  readonly id: number;
  readonly texts: readonly string[];
  /** Most tokens of each text, special tokens not counted. */
  readonly tokens: number;
}

export type FromCutWorker =
  | { readonly id: number; readonly cuts: readonly TokenCut[] }
  | { readonly id: number; readonly error: SerializedError };
