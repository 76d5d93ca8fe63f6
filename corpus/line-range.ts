/** Lines (Parquet: rows) [first, end) of a file, numbered from 1. */
export interface LineRange {
  readonly first: number;
  readonly end: number;
  /** A line at or before `first` and its byte offset, from which reading can start. */
  readonly seek?: { readonly line: number; readonly offset: number } | undefined;
}
