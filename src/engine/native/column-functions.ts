import type { ColumnType } from '../filter/column.ts';
import { call, job } from './native-function.ts';

declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeColumn {
  readonly [handleBrand]: 'column';
}

interface NativeBound {
  readonly value: string | number;
  readonly open: boolean;
}

/** A test of rows over columns by their position. The numbers 1 and 0 stand for true and false. */
export type NativeRowTest =
  | { readonly type: 'and' | 'or'; readonly tests: readonly NativeRowTest[] }
  | { readonly type: 'not'; readonly test: NativeRowTest }
  | { readonly type: 'exists'; readonly column: number }
  | { readonly type: 'in'; readonly column: number; readonly values: readonly (string | number)[] }
  | { readonly type: 'range'; readonly column: number; readonly least?: NativeBound; readonly most?: NativeBound };

/** The addon's functions for columns and filters. */
export const COLUMN_FUNCTIONS = {
  /** Maps the files of a column, one for each shard. Throws INDEX_FILE_MISSING or INDEX_FILE_FOREIGN with the file. */
  openColumn: job<(paths: readonly string[], type: ColumnType) => NativeColumn>(),
  /** Running evaluations keep the column until they end. */
  closeColumn: call<(column: NativeColumn) => void>(),
  /** The bitmap of the rows that pass, as in RowBitmap. `columns`: at least one, each of `rows` rows. */
  filterRows: job<(columns: readonly NativeColumn[], test: NativeRowTest, rows: number) => Uint8Array>(),
};
