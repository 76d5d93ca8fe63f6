import type { RowTest, StoredValue } from '../filter/bind-filter.ts';
import type { Column } from '../filter/column.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { ExtremesRequest } from './column-extremes.ts';

/** The files of one column. */
export interface ColumnSource extends Column {
  /** Absolute paths, one for each shard in row order. */
  readonly paths: readonly string[];
}

/** Finds the rows of an index that pass a filter, and the values by which they are sorted. */
export interface RowFilters {
  readonly columns: readonly Column[];
  /**
   * The rows, deleted ones included. Runs off the event loop, or in short slices on it.
   *
   * @throws TrawlError INDEX_FILE_… if a file is missing or damaged; CANCELLED.
   */
  rows(test: RowTest, signal?: AbortSignal): Promise<RowBitmap>;
  /**
   * The least or the most value of each row in a column, by its position in `columns`.
   *
   * @throws TrawlError as `rows`.
   */
  extremes(column: number, request: ExtremesRequest): Promise<readonly (StoredValue | undefined)[]>;
  /** Waits for running evaluations, then closes the files. May be called twice. */
  close(): Promise<void>;
}
