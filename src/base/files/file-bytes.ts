import { createReadStream } from 'node:fs';
import { TrawlError } from '../errors.ts';
import { DamagedDataError, startsLike } from './compression.ts';
import { gunzip } from './gzip.ts';
import { unzstd } from './zstd.ts';

/**
 * The bytes of a file of questions, judgements or results, decompressed if it begins like a gzip or zstd file: such files have many
 * names. Throws CORPUS_BAD_LINE for damaged compressed data, CORPUS_NOT_FOUND if the file cannot be read.
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
    // Compressed data has more bytes.
    const compression =
      start.length < 4 ? undefined : (['gzip', 'zstd'] as const).find((each) => startsLike(each, start));
    yield* compression === undefined ? all : compression === 'gzip' ? gunzip(all) : unzstd(all);
  } catch (error) {
    throw asTrawlError(path, error);
  } finally {
    file.destroy();
  }
}

function asTrawlError(path: string, error: unknown): TrawlError {
  const isDamaged =
    error instanceof DamagedDataError || (error as NodeJS.ErrnoException).code?.startsWith('Z_') === true;
  if (!isDamaged) return unreadable(path, error);
  const reason = error instanceof Error ? error.message : String(error);
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${path} cannot be decompressed (${reason}): it is truncated or damaged. Download it again.`,
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
