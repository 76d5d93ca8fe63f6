import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { throwIfCancelled } from '../src/base/abort.ts';
import { LineSplitter } from './line-splitter.ts';
import type { CorpusFile } from './list-corpus-files.ts';
import { readBytes } from './read-bytes.ts';
import { readingFailed } from './read-errors.ts';

const LF = 0x0a;

/** Lines between two recorded byte offsets of a plain JSONL file. */
export const LINES_PER_OFFSET = 65_536;

interface ScannedFile extends CorpusFile {
  /** SHA-256 of the file on disk, in hex. */
  readonly sha256: string;
  /** Lines of a text file, including blank ones and a header, or rows of a Parquet file. */
  readonly positions: number;
  /** Byte offset of line i × LINES_PER_OFFSET + 1. Only for plain JSONL; other files are always read from the start. */
  readonly lineOffsets: readonly number[];
  /** Modification time in milliseconds, to detect a file that is still being written. */
  readonly modifiedMs: number;
}

/**
 * Checksums and input positions of a corpus, before its passages are read. A position is a line or Parquet row, counted over
 * all files from 0, so all processes number the same files alike.
 */
export interface CorpusScan {
  readonly files: readonly ScannedFile[];
  readonly positions: number;
}

export interface ScanOptions {
  readonly signal?: AbortSignal;
  /** Called with the number of bytes read so far. */
  readonly onBytes?: (bytes: number) => void;
}

/** Reads every file once for its checksum and its number of positions, without decoding lines. */
export async function scanCorpus(files: readonly CorpusFile[], options: ScanOptions = {}): Promise<CorpusScan> {
  const scanned: ScannedFile[] = [];
  let readBefore = 0;
  for (const file of files) {
    scanned.push(await scanFile(file, options, readBefore));
    readBefore += file.sizeBytes;
  }
  return { files: scanned, positions: scanned.reduce((sum, { positions }) => sum + positions, 0) };
}

async function scanFile(file: CorpusFile, { signal, onBytes }: ScanOptions, readBefore: number): Promise<ScannedFile> {
  const { mtimeMs } = statSync(file.path);
  const hash = createHash('sha256');
  let read = readBefore;
  const onRead = (chunk: Buffer): void => {
    throwIfCancelled(signal);
    hash.update(chunk);
    read += chunk.length;
    onBytes?.(read);
  };
  let archive = false;
  const onArchive = (): void => {
    archive = true;
  };
  const { format, compression } = file.format;
  // Only such files can be read from the offset of a line.
  const isPlain = format.newline === 'lf' && compression === 'none';
  const counter = format.newline === 'universal' ? new SplitCounter() : new LineFeedCounter(isPlain);
  try {
    for await (const chunk of readBytes(file.path, { compression, onRead, onArchive })) {
      if (format.newline !== null) counter.push(chunk);
    }
  } catch (error) {
    throw readingFailed(file.path, counter.lines + 1, error);
  }
  counter.end();
  const positions = (await format.countRows?.(file.path)) ?? counter.lines;
  return {
    ...file,
    sha256: hash.digest('hex'),
    positions,
    lineOffsets: isPlain && !archive ? counter.offsets : [],
    modifiedMs: mtimeMs,
  };
}

/** Counts lines like `LineSplitter` for `\n` line ends, but faster. */
class LineFeedCounter {
  lines = 0;
  readonly offsets: number[] = [0];
  readonly #keepOffsets: boolean;
  #bytes = 0;
  /** Bytes after the last line end. */
  #open = 0;

  constructor(keepOffsets: boolean) {
    this.#keepOffsets = keepOffsets;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      from = at + 1;
      this.lines++;
      if (this.#keepOffsets && this.lines % LINES_PER_OFFSET === 0) this.offsets.push(this.#bytes + from);
    }
    this.#open = from === 0 ? this.#open + chunk.length : chunk.length - from;
    this.#bytes += chunk.length;
  }

  end(): void {
    if (this.#open > 0) this.lines++;
  }
}

/** Counts lines that may also end with `\r`. */
class SplitCounter {
  lines = 0;
  readonly offsets: readonly number[] = [];
  readonly #splitter = new LineSplitter({ newline: 'universal', maxLineBytes: 0 });

  push(chunk: Buffer): void {
    this.lines += this.#splitter.push(chunk).length;
  }

  end(): void {
    this.lines += this.#splitter.end().length;
  }
}
