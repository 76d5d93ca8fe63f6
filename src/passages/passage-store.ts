import type { TrawlError } from '../errors.ts';
import type { Lookup } from './schema.ts';

/**
 * Passages by row number. A passage is kept as the JSON text of its corpus row, so that every column, the type of its
 * id and integers beyond 2^53 come back exactly as they went in.
 */
export interface PassageStore {
  /** Number of passages; row numbers are [0, rows). */
  readonly rows: number;
  /**
   * The JSON documents of the given rows, in the order asked for (repeats allowed). Reading happens off the calling
   * thread. Rejects with a RangeError for a row that does not exist.
   */
  getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]>;
  /**
   * For each key the rows that have it as their id, URL or title, ascending, at most `limit` (≥ 1). Rejects with
   * NOT_SUPPORTED where the passages were stored without that look-up.
   */
  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]>;
  /** Waits for running reads. Safe to call twice. */
  /** What keeps every read from its answer; absent while reads are answered. */
  readonly failure?: TrawlError | undefined;
  close(): Promise<void>;
}
