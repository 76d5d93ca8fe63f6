import type { RowTest } from '../filter/bind-filter.ts';
import type { ColumnType } from '../filter/column.ts';
import { call, job } from './native-function.ts';

declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeColumn {
  readonly [handleBrand]: 'column';
}

/** The addon's functions for columns and filters. */
export const COLUMN_FUNCTIONS = {
  /** Maps the files of a column, one for each shard. Throws INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file. */
  openColumn: job<(paths: readonly string[], type: ColumnType) => NativeColumn>(),
  /** Running evaluations keep the column until they end. */
  closeColumn: call<(column: NativeColumn) => void>(),
  /** The bitmap of the rows that pass, as in RowBitmap. `test` names columns by their position; `columns`: at least one, each of `rows` rows. */
  filterRows: job<(columns: readonly NativeColumn[], test: RowTest, rows: number) => Uint8Array>(),
};
