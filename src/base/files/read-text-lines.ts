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
 * Reads the non-blank lines of a UTF-8 file, which may be compressed (`fileBytes`). Lines end with `\n` or `\r\n`; a byte order mark is
 * dropped.
 *
 * @throws TrawlError CORPUS_BAD_LINE for invalid UTF-8 and overlong lines, CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* readTextLines(file: string): AsyncGenerator<NumberedLine, void> {
  // fatal, because replacing invalid bytes would silently alter questions. Drops a byte order mark.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let number = 0;
  let pending = '';
  let start: Uint8Array = new Uint8Array();
  try {
    for await (const chunk of fileBytes(file)) {
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

/** Says what to do with a file that is not UTF-8. @param start its first bytes. */
export function notUtf8(start: Uint8Array): string {
  const mark = `${start[0]} ${start[1]}`;
  const convert = (from: string): string => `convert it: iconv -f ${from} -t UTF-8 FILE > NEW`;
  if (mark === '255 254' || mark === '254 255') return `the file is UTF-16, expected UTF-8; ${convert('UTF-16')}`;
  return `not valid UTF-8 from here on; if the file is in the encoding of Windows, ${convert('WINDOWS-1252')}`;
}
