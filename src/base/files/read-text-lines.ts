import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { TrawlError } from '../errors.ts';
import { fileBytes } from './file-bytes.ts';

/** Lines of question, judgement and run files have a few hundred bytes. Limits memory if the file has no line ends. */
const MAX_LINE_CHARACTERS = 8 * 1024 * 1024;

export interface NumberedLine {
  /** Line number in the file, from 1; blank lines count. */
  readonly number: number;
  readonly text: string;
}

/**
 * Reads the non-blank lines of a UTF-8 file, which may be compressed (`fileBytes`), or of another source of bytes. Lines end with `\n` or `\r\n`; a byte order mark is
 * dropped.
 *
 * @throws TrawlError CORPUS_BAD_LINE for invalid UTF-8 and overlong lines, CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* readTextLines(
  file: string,
  bytes: AsyncIterable<Buffer> = fileBytes(file),
): AsyncGenerator<NumberedLine, void> {
  // fatal, because replacing invalid bytes would silently alter questions. Drops a byte order mark.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let number = 0;
  let pending = '';
  let start: Uint8Array = new Uint8Array();
  try {
    for await (const chunk of bytes) {
      if (start.length === 0) start = chunk;
      const parts = (pending + decoder.decode(chunk, { stream: true })).split('\n');
      pending = parts.pop()!;
      for (const text of parts) {
        number += 1;
        if (text.trim() !== '') yield { number, text: withoutCr(text) };
      }
      if (pending.length > MAX_LINE_CHARACTERS) {
        const reason = `the line has more than ${MAX_LINE_CHARACTERS} characters; expected one entry per line`;
        throw lineError(file, number + 1, reason);
      }
    }
    pending += decoder.decode();
  } catch (error) {
    if (error instanceof TypeError) throw lineError(file, number + 1, notUtf8(start), error);
    throw error;
  }
  if (pending.trim() !== '') yield { number: number + 1, text: withoutCr(pending) };
}

/** The error for an invalid line of a question, judgement or run file. */
export function lineError(file: string, line: number, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('CORPUS_BAD_LINE', `${file}:${line}: ${reason}.`, { details: { file, line }, cause });
}

function withoutCr(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}

/** The text of a small UTF-8 file, without a byte order mark. @throws what `invalid` makes of a reason. */
export function readTextSync(path: string, invalid: (reason: string, cause?: unknown) => Error): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw invalid(`cannot be read: ${(cause as Error).message}`, cause);
  }
  if (!isUtf8(bytes) || bytes.includes(0)) throw invalid(`cannot be used: ${notUtf8(bytes)}`);
  return new TextDecoder().decode(bytes);
}

/** Says what to do with a file that is not UTF-8. @param start its first bytes. */
export function notUtf8(start: Uint8Array): string {
  const [first, second] = start;
  const convert = (from: string): string => `convert it: iconv -f ${from} -t UTF-8 FILE > NEW`;
  // A byte order mark, or the high byte of an ASCII character.
  const isUtf16 = (first! >= 254 && second! >= 254) || first === 0 || second === 0;
  if (isUtf16) return `the file is UTF-16, expected UTF-8; ${convert('UTF-16')}`;
  return `not valid UTF-8 from here on; if the file is in the encoding of Windows, ${convert('WINDOWS-1252')}`;
}
