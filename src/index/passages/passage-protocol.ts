import type { SerializedError } from '../../base/errors.ts';
import type { Lookup } from './schema.ts';

export interface PassageShard {
  /** Absolute path of the passage file. */
  readonly path: string;
  readonly firstRow: number;
  readonly rows: number;
}

/** What is read of a row: its document, or its id as text. */
export type RowContent = 'document' | 'id';

/** Requests of the passage store to a reader thread, which answers each before it gets the next. */
export type PassageRequest =
  | {
      readonly type: 'get';
      readonly what: RowContent;
      readonly rows: Float64Array;
      /** Time limit in milliseconds. Rows that are not read in time are returned as null. Reads at least one row. */
      readonly budgetMs: number;
    }
  | { readonly type: 'find'; readonly by: Lookup; readonly keys: readonly string[]; readonly limit: number };

export type PassageReply =
  | {
      readonly type: 'documents';
      /** Documents or ids in the order of the requested rows; null for rows that failed or were not read in time. */
      readonly documents: readonly (string | null)[];
      readonly failures: readonly { readonly index: number; readonly error: SerializedError }[];
    }
  | { readonly type: 'found'; readonly rows: readonly number[][] }
  | { readonly type: 'failed'; readonly error: SerializedError };
