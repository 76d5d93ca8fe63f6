import { createHash, type Hash } from 'node:crypto';

import type { CorpusFormat } from './corpus-format.ts';
import type { CorpusFile } from './list-corpus-files.ts';

/** Bad rows of which the message is kept. */
export const MAX_EXAMPLES = 10;

/** What has been read of one file so far. */
export interface CorpusFileReport {
  readonly path: string;
  readonly format: CorpusFormat;
  /** Size on disk when it was listed. */
  readonly sizeBytes: number;
  /** Bytes read from disk so far; for Parquet it jumps from 0 to all when the file's rows are through. */
  readonly readBytes: number;
  /** Passages yielded so far. */
  readonly passages: number;
  readonly skippedLines: number;
  /** SHA-256 in hex of the file's bytes; null until the file is read to its end, or when checksums are off. */
  readonly sha256: string | null;
}

/** What has been read of a corpus so far; grows while the passages are taken. */
export interface CorpusReport {
  readonly files: readonly CorpusFileReport[];
  readonly passages: number;
  readonly skippedLines: number;
  /** The messages, with file:line, of the first skipped lines. */
  readonly skippedExamples: readonly string[];
  readonly readBytes: number;
  readonly sizeBytes: number;
}

/** The counters of one file. */
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

  /** The file has been read to its end. */
  finish(): void {
    this.#sha256 = this.#hash?.digest('hex') ?? null;
  }

  report(): CorpusFileReport {
    return {
      ...this.#file,
      readBytes: this.#readBytes,
      passages: this.passages,
      skippedLines: this.skippedLines,
      sha256: this.#sha256,
    };
  }
}

/** Adds the files up. */
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
