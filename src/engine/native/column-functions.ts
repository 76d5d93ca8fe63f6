import type { ColumnType } from '../filter/column.ts';

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
export interface ColumnFunctions {
  openColumn(paths: readonly string[], type: ColumnType): NativeColumn;
  closeColumn(column: NativeColumn): void;
  /** Bitmap of the rows that pass, as in RowBitmap. */
  filterRows(id: number, columns: readonly NativeColumn[], test: NativeRowTest, rows: number): Promise<Uint8Array>;
}
