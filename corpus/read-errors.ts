import { isNodeError, TrawlError } from '../src/base/errors.ts';
import { DamagedDataError } from '../src/base/files/compression.ts';
import { formatLocation } from './passage.ts';

export function notFound(path: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError(
    'CORPUS_NOT_FOUND',
    `The corpus ${path} cannot be read: ${reason}. Check the path and its permissions.`,
    { details: { path }, cause },
  );
}

export function reasonOf(error: unknown): string {
  if (!isNodeError(error)) return error instanceof Error ? error.message : String(error);
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return 'no such file or directory';
  if (error.code === 'EACCES' || error.code === 'EPERM') return 'permission denied';
  return error.message;
}

/** Translates an error that ended the reading of a file to a TrawlError with the line. */
export function readingFailed(path: string, line: number, error: unknown): unknown {
  if (error instanceof DamagedDataError) {
    return new TrawlError('CORPUS_BAD_LINE', `${formatLocation({ file: path, line })}: ${error.message}.`, {
      details: { path, line },
      cause: error,
    });
  }
  if (error instanceof TrawlError || !isNodeError(error)) return error;
  if (error.code?.startsWith('Z_')) {
    return new TrawlError(
      'CORPUS_BAD_LINE',
      `${formatLocation({ file: path, line })}: the gzip data cannot be decompressed from here on (${error.message}): ` +
        'the file is truncated or damaged. Download it again, or check it with gzip -t.',
      { details: { path, line }, cause: error },
    );
  }
  return notFound(path, reasonOf(error), error);
}
