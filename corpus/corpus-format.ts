import type { Compression } from '../src/base/files/compression.ts';
import type { ReadRow } from './check-row.ts';
import type { Newline } from './line-splitter.ts';
import type { ColumnNames } from './row-columns.ts';
import type { TsvIdType } from './tsv-layout.ts';

/**
 * A format of corpus files. Each format has a file in this folder, which exports a `CorpusFormat`, and an entry in `corpus-formats.ts`.
 * The values of --format, the messages and docs/command-line.md follow from the entries.
 */
export interface CorpusFormat {
  /** The value of --format for plain files. For compressed files `.gz` or `.zst` follows the name. */
  readonly name: string;
  /** Endings of file names, lower-case, without the compression. */
  readonly extensions: readonly string[];
  /** What a file contains, as the table in corpus/README.md says it. */
  readonly content: string;
  /**
   * What ends a line of a text format. With `lf`, a build may begin to read a plain file at a later line (`LineRange.seek`).
   *
   * Null for any other format. Its files are not compressed as a whole, are not read from a pipe, and have rows in place of lines, which
   * `countRows` counts.
   */
  readonly newline: Newline | null;
  /** Reads the rows in order, a batch for each block of the file. For a row that cannot be used, it yields the reason. */
  rows(context: ReaderContext): AsyncGenerator<readonly ReadRow[], void>;
  /** The number of rows of a file. Set if and only if `newline` is null: the scan counts the lines of text files itself. */
  countRows?(path: string): Promise<number>;
}

export interface ReaderContext {
  readonly path: string;
  readonly compression: Compression;
  readonly maxLineBytes: number;
  /** Called with each chunk of the file's bytes, before decompression. */
  readonly onRead: (chunk: Buffer) => void;
  /** Read only these lines (Parquet: rows). */
  readonly range?: LineRange;
  /** Names of columns that take precedence over the usual ones. */
  readonly columns: ColumnNames;
  readonly tsvLayout: string;
  readonly tsvIdType: TsvIdType;
}

/** Lines (Parquet: rows) [first, end) of a file, numbered from 1. */
export interface LineRange {
  readonly first: number;
  readonly end: number;
  /** A line at or before `first`, and the byte offset at which that line begins: reading can start there. */
  readonly seek?: { readonly line: number; readonly offset: number };
}
