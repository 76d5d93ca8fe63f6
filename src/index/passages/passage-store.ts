import type { TrawlError } from '../../base/errors.ts';
import type { Lookup } from './schema.ts';

/**
 * Passages by row number. A passage is stored as the JSON text of its corpus row, which preserves every column, the type of
 * its id and integers beyond 2^53.
 */
export interface PassageStore {
  /** Number of passages; row numbers are [0, rows). */
  readonly rows: number;
  /**
   * The JSON documents of the rows, in the given order; rows may repeat. Reads in other threads. Rejects with a RangeError for
   * a row that does not exist.
   */
  getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]>;
  /**
   * The ids of the rows as text, in the given order; `row:` and the row number for a row without one. Otherwise like `getMany`, but
   * faster, because the documents are not read.
   */
  idsOf(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]>;
  /**
   * For each key the rows with this id, URL or title, ascending, at most `limit` (≥ 1). Rejects with NOT_SUPPORTED if the
   * passages were stored without that look-up.
   */
  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]>;
  /** The error with which every read fails until the index is opened again; undefined while reads work. */
  readonly failure: TrawlError | undefined;
  /** Waits for running reads. May be called twice. */
  close(): Promise<void>;
}
