import { isUtf8 } from 'node:buffer';
import type { FileHandle } from 'node:fs/promises';
import { LineSplitter, type RawLine } from '../../corpus/line-splitter.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import { startsLike } from '../../src/base/files/compression.ts';
import { gunzip, unzstd } from '../../src/base/files/decompress.ts';
import { closeAll, openRecordSets, type RecordFileHandle } from './record-files.ts';
import { parseLine, type RecordedOpening, type RecordedQuery, type RecordHead } from './recorded-query.ts';

interface Line {
  readonly file: string;
  readonly line: number;
  /** The line as it is in the file, without its line end. */
  readonly text: string;
}

export type RecordLine = Line & { readonly query: RecordedQuery };

export type AnyLine = RecordLine | (Line & { readonly opening: RecordedOpening });

export interface DamagedLine {
  readonly file: string;
  readonly line: number;
  readonly reason: string;
  /** Whether it is the unfinished last line of its file, as a server leaves it that was killed. */
  readonly unfinished: boolean;
}

export interface ReadRecordsOptions {
  /**
   * Called for each damaged line, which is left out. Default: the unfinished last line of a file is left out, and any other damaged line
   * throws CORPUS_BAD_LINE.
   */
  readonly onDamaged?: (line: DamagedLine) => void;
  readonly signal?: AbortSignal;
}

const CHUNK_BYTES = 256 * 1024;
/** A record has a few kilobytes, and one of 2,048 hits about 60. Limits memory if a file has no line ends. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Reads the queries in files of `--record` in the order of `paths`, each with its rotated files, oldest first; compressed files by their
 * first bytes. Memory does not depend on the size of the files. Leaving the loop early closes them.
 *
 * @throws TrawlError CORPUS_NOT_FOUND; CORPUS_BAD_LINE for a damaged line, or for compressed data that is damaged.
 */
export async function* readRecords(
  paths: readonly string[],
  options: ReadRecordsOptions = {},
): AsyncGenerator<RecordLine, void> {
  for await (const line of readAllRecords(paths, options)) if ('query' in line) yield line;
}

/** As `readRecords`, with the openings. */
export async function* readAllRecords(
  paths: readonly string[],
  options: ReadRecordsOptions = {},
): AsyncGenerator<AnyLine, void> {
  yield* readAllRecordFiles((await openRecordSets(paths)).flat(), options);
}

/** As `readAllRecords`, of open files, which are closed at the end. */
export async function* readAllRecordFiles(
  files: readonly RecordFileHandle[],
  options: ReadRecordsOptions,
): AsyncGenerator<AnyLine, void> {
  try {
    for (const file of files) yield* linesOf(file, options);
  } finally {
    await closeAll(files);
  }
}

async function* linesOf(
  { path: file, handle }: RecordFileHandle,
  { onDamaged = refuse, signal }: ReadRecordsOptions,
): AsyncGenerator<AnyLine, void> {
  const splitter = new LineSplitter({ newline: 'lf', maxLineBytes: MAX_LINE_BYTES });
  const usable = function* (lines: readonly RawLine[], unfinished: boolean): Generator<AnyLine, void> {
    for (const raw of lines) {
      const read = readLine(file, raw);
      if (typeof read === 'string') onDamaged({ file, line: raw.number, reason: read, unfinished });
      else if (read !== undefined) yield read;
    }
  };
  try {
    for await (const chunk of unpacked(handle)) {
      throwIfCancelled(signal);
      yield* usable(splitter.push(chunk), false);
    }
  } catch (error) {
    throw readingFailed(file, splitter.nextNumber, error);
  }
  yield* usable(splitter.end(), true);
}

/** The record of a line, or why it is none; undefined for a blank line. */
function readLine(file: string, { number: line, bytes, sizeBytes }: RawLine): AnyLine | string | undefined {
  if (bytes === null) return `the line has ${sizeBytes} bytes, more than ${MAX_LINE_BYTES}`;
  if (!isUtf8(bytes)) return 'not valid UTF-8';
  const text = bytes.toString('utf8');
  if (text.trim() === '') return undefined;
  const parsed = parseLine(text);
  return typeof parsed === 'string' ? parsed : { file, line, text, ...parsed };
}

async function* unpacked(handle: FileHandle): AsyncGenerator<Buffer, void> {
  const start = await handle.read(Buffer.alloc(4), 0, 4, 0);
  const magic = start.buffer.subarray(0, start.bytesRead);
  const source = chunksOf(handle);
  if (magic.length === 4 && startsLike('zstd', magic)) yield* unzstd(source);
  else if (magic.length >= 2 && startsLike('gzip', magic)) yield* gunzip(source);
  else yield* source;
}

async function* chunksOf(handle: FileHandle): AsyncGenerator<Buffer, void> {
  for (let position = 0; ; ) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

export function headOf(line: AnyLine): RecordHead {
  return 'query' in line ? line.query : line.opening;
}

function refuse({ file, line, reason, unfinished }: DamagedLine): void {
  if (unfinished) return;
  const wayOut = 'Write the other lines to a new file: `trawl records cat FILE --skip-damaged --out NEW`';
  throw badLine(file, line, `${reason}. ${wayOut}`);
}

function badLine(file: string, line: number, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('CORPUS_BAD_LINE', `${file}:${line}: ${reason}.`, { details: { file, line }, cause });
}

/** Names the file and line of an error that ended the reading of a file. */
function readingFailed(file: string, line: number, error: unknown): unknown {
  if (error instanceof TrawlError || !(error instanceof Error)) return error;
  const isDamage = error.name === 'DamagedDataError' || (isNodeError(error) && error.code?.startsWith('Z_') === true);
  if (!isDamage) return error;
  return badLine(file, line, `the compressed data cannot be read from here on (${error.message})`, error);
}
