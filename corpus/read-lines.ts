import { isUtf8 } from 'node:buffer';
import type { Compression } from '../src/base/files/compression.ts';
import { lineError, notUtf8 } from '../src/base/files/read-text-lines.ts';
import type { LineRange } from './corpus-format.ts';
import { LineSplitter, type Newline, type RawLine } from './line-splitter.ts';
import { readBytes } from './read-bytes.ts';
import { readingFailed } from './read-errors.ts';

/** Longest line. Passages have a few KiB; a file with a longer line is probably one JSON array. */
export const DEFAULT_MAX_LINE_BYTES = 64 * 1024 * 1024;

type TextLine =
  | { readonly ok: true; readonly number: number; readonly text: string }
  | { readonly ok: false; readonly number: number; readonly reason: string };

interface ReadLinesOptions {
  compression: Compression;
  newline: Newline;
  maxLineBytes: number;
  onRead: (chunk: Buffer) => void;
  /** Yield only these lines, and stop reading after them. */
  range?: LineRange;
}

/**
 * Reads the lines of a UTF-8 text file, a batch per chunk. A byte order mark at the start is dropped. A bad line is yielded
 * with a reason; an error that ends the reading is thrown.
 */
export async function* readLines(path: string, options: ReadLinesOptions): AsyncGenerator<TextLine[], void> {
  const { range, maxLineBytes } = options;
  const splitter = new LineSplitter({ ...options, firstNumber: range?.seek?.line });
  const wanted = (lines: RawLine[]): TextLine[] =>
    (range === undefined ? lines : lines.filter(({ number }) => number >= range.first && number < range.end)).map(
      (line) => decode(line, path, maxLineBytes),
    );
  try {
    for await (const chunk of readBytes(path, { ...options, start: range?.seek?.offset })) {
      const lines = wanted(splitter.push(chunk));
      if (lines.length > 0) yield lines;
      if (range !== undefined && splitter.nextNumber >= range.end) return;
    }
    const last = wanted(splitter.end());
    if (last.length > 0) yield last;
  } catch (error) {
    throw readingFailed(path, splitter.nextNumber, error);
  }
}

/** @throws TrawlError CORPUS_BAD_LINE for UTF-16, of which every line would be bad. */
function decode({ number, bytes, sizeBytes }: RawLine, path: string, maxLineBytes: number): TextLine {
  if (bytes === null) {
    const reason = `the line has ${sizeBytes} bytes, more than the limit of ${maxLineBytes}; if the file is a JSON array, write one object per line`;
    return { ok: false, number, reason };
  }
  const content = number === 1 ? withoutByteOrderMark(bytes) : bytes;
  if (isUtf8(content)) return { ok: true, number, text: content.toString('utf8') };
  const reason = notUtf8(number === 1 ? content : new Uint8Array());
  if (reason.startsWith('the file')) throw lineError(path, number, reason);
  return { ok: false, number, reason };
}

function withoutByteOrderMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}
