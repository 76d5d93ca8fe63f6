import type { SerializedError } from '../errors.ts';
import type { Lookup } from './schema.ts';

export interface PassageShard {
  /** Absolute path of the passage file. */
  readonly path: string;
  readonly firstRow: number;
  readonly rows: number;
}

/** Messages between the passage store and its reader threads. A reader has at most one at a time. */
export interface PassageWorkerData {
  readonly shards: readonly PassageShard[];
}

export type ToPassageWorker =
  | {
      readonly type: 'get';
      readonly rows: Float64Array;
      /** After so many milliseconds what is not read yet is left; one row is always read. */
      readonly budgetMs: number;
    }
  | { readonly type: 'find'; readonly by: Lookup; readonly keys: readonly string[]; readonly limit: number }
  | { readonly type: 'close' };

export type FromPassageWorker =
  | { readonly type: 'ready' }
  | {
      readonly type: 'documents';
      /** Beside the rows asked for; null for those that failed or were left. */
      readonly documents: readonly (string | null)[];
      readonly failures: readonly { readonly index: number; readonly error: SerializedError }[];
    }
  | { readonly type: 'found'; readonly rows: readonly number[][] }
  | { readonly type: 'failed'; readonly error: SerializedError };
