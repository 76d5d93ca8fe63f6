import { createHash, type Hash } from 'node:crypto';

import type { CorpusFile } from './list-corpus-files.ts';

/** Limit of the examples of bad lines in a report. */
export const MAX_EXAMPLES = 10;

/** Progress on one file. */
export interface CorpusFileReport {
  readonly path: string;
  /** A name of --format. */
  readonly format: string;
  /** Size on disk when the corpus was listed. */
  readonly sizeBytes: number;
  /** Bytes read from disk so far. For Parquet, 0 until all rows are read, then the whole size. */
  readonly readBytes: number;
  /** Passages yielded so far. */
  readonly passages: number;
  readonly skippedLines: number;
  /** SHA-256 of the file in hex; null until it is read to its end, or without checksums. */
  readonly sha256: string | null;
}

/** Progress on a corpus. */
export interface CorpusReport {
  readonly files: readonly CorpusFileReport[];
  readonly passages: number;
  readonly skippedLines: number;
  /** Messages, with file:line, about the first skipped lines. */
  readonly skippedExamples: readonly string[];
  readonly readBytes: number;
  readonly sizeBytes: number;
}

/** Counts what has been read from one file. */
export class FileCounters {
  passages = 0;
  skippedLines = 0;
  readonly #file: CorpusFile;
  readonly #hash: Hash | null;
  #readBytes = 0;
  #sha256: string | null = null;

  constructor(file: CorpusFile, checksums: boolean) {
    this.#file = file;
    this.#hash = checksums ? createHash('sha256') : null;
  }

  readonly onRead = (chunk: Buffer): void => {
    this.#readBytes += chunk.length;
    this.#hash?.update(chunk);
  };

  /** Call at the end of the file. */
  finish(): void {
    this.#sha256 = this.#hash?.digest('hex') ?? null;
  }

  report(): CorpusFileReport {
    return {
      ...this.#file,
      format: this.#file.format.name,
      readBytes: this.#readBytes,
      passages: this.passages,
      skippedLines: this.skippedLines,
      sha256: this.#sha256,
    };
  }
}

/** Sums up the files. */
export function summarize(counters: readonly FileCounters[], skippedExamples: readonly string[]): CorpusReport {
  const files = counters.map((file) => file.report());
  const total = (count: (file: CorpusFileReport) => number): number =>
    files.reduce((sum, file) => sum + count(file), 0);
  return {
    files,
    passages: total((file) => file.passages),
    skippedLines: total((file) => file.skippedLines),
    skippedExamples: [...skippedExamples],
    readBytes: total((file) => file.readBytes),
    sizeBytes: total((file) => file.sizeBytes),
  };
}
