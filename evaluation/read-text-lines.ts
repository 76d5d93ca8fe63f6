import { createReadStream } from 'node:fs';

import { TrawlError } from '../src/errors.ts';

/** Questions, judgements and results have a few hundred bytes a line; a file of another kind may have no line end. */
const MAX_LINE_CHARACTERS = 8 * 1024 * 1024;

export interface NumberedLine {
  /** From 1; blank lines count. */
  readonly number: number;
  readonly text: string;
}

/** The lines of a UTF-8 file that are not blank. Lines end with `\n` or `\r\n`; a byte order mark is dropped. */
export async function* readTextLines(file: string): AsyncGenerator<NumberedLine, void> {
  // Fatal: a question that is silently altered would be judged wrongly. A byte order mark is dropped by default.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let number = 0;
  let pending = '';
  try {
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      const parts = (pending + decoder.decode(chunk, { stream: true })).split('\n');
      pending = parts.pop()!;
      for (const text of parts) {
        number += 1;
        if (text.trim() !== '') yield { number, text: withoutCr(text) };
      }
      if (pending.length > MAX_LINE_CHARACTERS) {
        throw lineError(
          file,
          number + 1,
          `a line of more than ${MAX_LINE_CHARACTERS} characters; expected one entry a line`,
        );
      }
    }
    pending += decoder.decode();
  } catch (error) {
    if (error instanceof TrawlError) throw error;
    if (error instanceof TypeError) throw lineError(file, number + 1, 'not valid UTF-8 from here on', error);
    const reason = error instanceof Error ? error.message : String(error);
    throw new TrawlError('CORPUS_NOT_FOUND', `${file} cannot be read: ${reason}. Check the path and its permissions.`, {
      details: { path: file },
      cause: error,
    });
  }
  if (pending.trim() !== '') yield { number: number + 1, text: withoutCr(pending) };
}

/** A line of a question, judgement or run file that cannot be used. */
export function lineError(file: string, line: number, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('CORPUS_BAD_LINE', `${file}:${line}: ${reason}.`, { details: { file, line }, cause });
}

function withoutCr(text: string): string {
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}
