import { TimeSlice } from '../../base/time-slice.ts';
import type { RowTest } from '../filter/bind-filter.ts';
import type { Column, StoredValue } from '../filter/column.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import { ColumnFile } from './column-file.ts';

/** The files of one column. */
export interface ColumnSource extends Column {
  /** Absolute paths, one for each shard in row order. */
  readonly paths: readonly string[];
}

/** Finds the rows of an index that pass a filter, and the values by which they are sorted. */
export interface RowFilters {
  /**
   * The rows, deleted ones included. Runs off the event loop, or in short slices on it.
   *
   * @throws TrawlError INDEX_FILE_… if a file is missing or damaged; CANCELLED.
   */
  rows(test: RowTest, signal?: AbortSignal): Promise<RowBitmap>;
  /** `columnExtremes` of a column, by its position in the sources. */
  extremes(column: number, request: ExtremesRequest): Promise<readonly (StoredValue | undefined)[]>;
  /** Waits for running evaluations, then closes the files. May be called twice. */
  close(): Promise<void>;
}

export interface ExtremesRequest {
  readonly rows: ArrayLike<number>;
  /** Which value of a row with several is taken. */
  readonly which: 'least' | 'most';
  readonly signal?: AbortSignal;
}

/** Rows between two checks of the time slice. */
const ROWS_AT_ONCE = 4_096;

/**
 * The least or the most of the values of each row, in the order of the rows; undefined for a row without a value. Texts are compared
 * by their UTF-8. Reads the files of the shards that have one of the rows, one after another.
 *
 * @param paths the column's files, one for each shard in row order.
 * @throws TrawlError INDEX_FILE_… if a file is missing or damaged; CANCELLED.
 */
export async function columnExtremes(
  paths: readonly string[],
  { rows, which, signal }: ExtremesRequest,
): Promise<readonly (StoredValue | undefined)[]> {
  const values = new Array<StoredValue | undefined>(rows.length);
  const slice = new TimeSlice(signal);
  let left = rows.length;
  let first = 0;
  for (const path of paths) {
    if (left === 0) break;
    const file = await ColumnFile.read(path);
    const end = first + file.header.rows;
    for (let i = 0; i < rows.length; i++) {
      if (i % ROWS_AT_ONCE === 0 && slice.isOver) await slice.yield();
      const row = rows[i]!;
      if (row < first || row >= end) continue;
      values[i] = extremeOf(file, row - first, which);
      left--;
    }
    first = end;
  }
  return values;
}

function extremeOf(file: ColumnFile, row: number, which: ExtremesRequest['which']): StoredValue | undefined {
  let found: number | undefined;
  for (let at = file.startOf(row); at < file.endOf(row); at++) {
    const element = file.element(at);
    if (!file.isValue(element)) continue;
    if (found === undefined || (which === 'least' ? element < found : element > found)) found = element;
  }
  return found === undefined ? undefined : file.valueOf(found);
}
