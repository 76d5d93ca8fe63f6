import type { Compression } from '../src/base/files/compression.ts';
import type { ReadRow } from './check-row.ts';
import type { Newline } from './line-splitter.ts';
import type { TsvIdType, TsvLayout } from './tsv-layout.ts';

/**
 * A format of corpus files. Its file exports one of these, and `corpus-formats.ts` lists it; option values, messages and the documents
 * follow.
 */
export interface CorpusFormat {
  /** Its value of --format. Compressed files have .gz or .zst after it. */
  readonly name: string;
  /** Endings of file names, lower-case, without the compression. */
  readonly extensions: readonly string[];
  /** What a file contains, for the documents. */
  readonly content: string;
  /** What ends a line. Null: the format is not text, so a file is neither compressed as a whole nor read from a pipe. */
  readonly newline: Newline | null;
  /** Reads the rows, a batch for each block of the file. */
  read(context: ReaderContext): AsyncGenerator<readonly ReadRow[], void>;
  /** The number of rows of a file that is not text. */
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
  readonly tsvLayout: TsvLayout;
  readonly tsvIdType: TsvIdType;
}

/** Lines (Parquet: rows) [first, end) of a file, numbered from 1. */
export interface LineRange {
  readonly first: number;
  readonly end: number;
  /** A line at or before `first` and its byte offset, from which reading can start. */
  readonly seek?: { readonly line: number; readonly offset: number };
}
