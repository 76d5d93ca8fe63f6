import type { SerializedError } from '../errors.ts';
import type { Lookup } from './schema.ts';

export interface PassageShard {
  /** Absolute path of the passage file. */
  readonly path: string;
  readonly firstRow: number;
  readonly rows: number;
}

/** Messages between the passage store and its worker thread. */
export interface PassageWorkerData {
  readonly shards: readonly PassageShard[];
}

export type ToPassageWorker =
  | { readonly type: 'get'; readonly id: number; readonly rows: Float64Array }
  | {
      readonly type: 'find';
      readonly id: number;
      readonly by: Lookup;
      readonly keys: readonly string[];
      readonly limit: number;
    }
  | { readonly type: 'close' };

export type FromPassageWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'documents'; readonly id: number; readonly documents: string[] }
  | { readonly type: 'found'; readonly id: number; readonly rows: number[][] }
  | { readonly type: 'failed'; readonly id: number; readonly error: SerializedError };
