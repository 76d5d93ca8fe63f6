import type { SerializedError } from '../../base/errors.ts';
import type { Lookup } from './schema.ts';

export interface PassageShard {
  /** Absolute path of the passage file. */
  readonly path: string;
  readonly firstRow: number;
  readonly rows: number;
}

/** What is read: the documents or the ids (as text) of rows, or the rows with a key, ascending, at most `limit`. */
export type ReadKind = 'document' | 'id' | { readonly by: Lookup; readonly limit: number };

/** What is read of an item: a document, an id, or row numbers. */
export type ReadValue = string | number[];

/** A message of the passage store to a reader thread, which answers each before it gets the next. */
export interface PassageRequest {
  readonly kind: ReadKind;
  /** Row numbers, or keys. */
  readonly items: readonly (number | string)[];
  /** Time limit in milliseconds for rows; look-ups have none. Rows that are not read in time come back as null. At least one is read. */
  readonly budgetMs: number;
}

export interface PassageReply {
  /** In the order of the items; null for rows that failed or were not read in time. */
  readonly values: readonly (ReadValue | null)[];
  readonly failures: readonly { readonly index: number; readonly error: SerializedError }[];
}
