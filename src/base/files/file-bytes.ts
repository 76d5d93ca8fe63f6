import { createReadStream } from 'node:fs';
import { TrawlError } from '../errors.ts';
import { compressionOf, DamagedDataError } from './compression.ts';
import { decompress } from './decompress.ts';
import { checkIsText } from './foreign-file.ts';

/**
 * The bytes of a file of questions, judgements or results, decompressed if it begins like a gzip or zstd file: such files have many
 * names. Throws CORPUS_BAD_LINE for damaged compressed data, CORPUS_FORMAT_UNKNOWN for a file that is not text, CORPUS_NOT_FOUND if the
 * file cannot be read.
 */
export async function* fileBytes(path: string): AsyncGenerator<Buffer, void> {
  const file = createReadStream(path);
  try {
    const chunks = file[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const first = await chunks.next();
    if (first.done === true) return;
    const start = first.value;
    const all = (async function* (): AsyncGenerator<Buffer, void> {
      yield start;
      for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
    })();
    let isFirst = true;
    for await (const chunk of decompress(all, compressionOf(start))) {
      if (isFirst) checkIsText(path, chunk);
      isFirst = false;
      yield chunk;
    }
  } catch (error) {
    throw damagedOrUnreadable(path, error);
  } finally {
    file.destroy();
  }
}

function damagedOrUnreadable(path: string, error: unknown): TrawlError {
  if (error instanceof TrawlError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (!(error instanceof DamagedDataError) && !code?.startsWith('Z_')) return unreadable(path, error);
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${path} cannot be decompressed (${message}): it is truncated or damaged. Download it again.`,
    { details: { path }, cause: error },
  );
}

/** The error for a file that cannot be read. */
export function unreadable(path: string, error: unknown): TrawlError {
  const reason = error instanceof Error ? error.message : String(error);
  return new TrawlError('CORPUS_NOT_FOUND', `Cannot read ${path}: ${reason}. Check the path and its permissions.`, {
    details: { path },
    cause: error,
  });
}
