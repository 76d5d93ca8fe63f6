import { createHash } from 'node:crypto';
import { throwIfCancelled } from '../src/base/abort.ts';
import { fileState } from '../src/base/system/file-checksum.ts';
import { LineSplitter } from './line-splitter.ts';
import type { CorpusFile } from './list-corpus-files.ts';
import { readBytes } from './read-bytes.ts';
import { readingFailed } from './read-errors.ts';

const LF = 0x0a;

/** Lines between two recorded byte offsets of a file. */
export const LINES_PER_OFFSET = 65_536;

interface ScannedFile extends CorpusFile {
  /** SHA-256 of the file on disk, in hex. */
  readonly sha256: string;
  /** Lines of a text file, including blank ones and a header, or rows of a Parquet file. */
  readonly positions: number;
  /**
   * Byte offset of line i × LINES_PER_OFFSET + 1. Empty unless the file is plain and its lines end with `\n` only (JSONL): other files are
   * always read from the start.
   */
  readonly lineOffsets: readonly number[];
  /** As `fileState`, to detect a file that is still being written. */
  readonly state: string | undefined;
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
  const { format, compression } = file.format;
  const state = fileState(file.path);
  const hash = createHash('sha256');
  let read = readBefore;
  const onRead = (chunk: Buffer): void => {
    throwIfCancelled(signal);
    hash.update(chunk);
    read += chunk.length;
    onBytes?.(read);
  };
  let isArchive = false;
  const onArchive = (): void => {
    isArchive = true;
  };
  const splitter =
    format.newline === 'universal' ? new LineSplitter({ newline: 'universal', maxLineBytes: 0 }) : undefined;
  let [lines, bytesBefore, openBytes] = [0, 0, 0];
  const lineOffsets = [0];
  try {
    const isBinary = format.newline === null;
    for await (const chunk of readBytes(file.path, { compression, onRead, onArchive, isBinary })) {
      if (splitter !== undefined) lines += splitter.push(chunk).length;
      else if (format.newline === 'lf') {
        // Faster than a splitter.
        let from = 0;
        for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
          from = at + 1;
          if (++lines % LINES_PER_OFFSET === 0) lineOffsets.push(bytesBefore + from);
        }
        openBytes = from === 0 ? openBytes + chunk.length : chunk.length - from;
        bytesBefore += chunk.length;
      }
    }
  } catch (error) {
    throw readingFailed(file.path, lines + 1, error);
  }
  // The last line may have no line end.
  lines += splitter?.end().length ?? (openBytes > 0 ? 1 : 0);
  // Only a plain file can be read from the offset of a line.
  const isPlain = format.newline === 'lf' && compression === 'none' && !isArchive;
  return {
    ...file,
    sha256: hash.digest('hex'),
    positions: (await format.countRows?.(file.path)) ?? lines,
    lineOffsets: isPlain ? lineOffsets : [],
    state,
  };
}
