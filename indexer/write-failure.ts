import { isNodeError, TrawlError } from '../src/errors.ts';

/** Reasons a person can mend, by the codes of Node and SQLite. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no file can be made there (does its parent folder exist?)',
  EEXIST: 'something else has that name',
  ENOTDIR: 'a part of the path is a file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'the operation is not permitted',
  EROFS: 'the file system is read-only',
  EBUSY: 'it is in use',
  ENAMETOOLONG: 'the name is too long',
  EIO: 'the disk reports an error',
  SQLITE_CANTOPEN: 'SQLite cannot open a file there',
  SQLITE_READONLY: 'the file is read-only',
  SQLITE_IOERR: 'the disk reports an error',
};

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'SQLITE_FULL']);

/** What went wrong while `path` was written, as DISK_FULL or OUTPUT_NOT_WRITABLE; any other error as it came. */
export function writeFailure(error: unknown, path: string): unknown {
  if (error instanceof TrawlError || !isNodeError(error)) return error;
  if (FULL.has(error.code!)) {
    return new TrawlError('DISK_FULL', `${path}: no space left to write it. Free space, or choose another place.`, {
      details: { path },
      cause: error,
    });
  }
  const code = error.code!.startsWith('SQLITE_IOERR') ? 'SQLITE_IOERR' : error.code!;
  const reason = REASONS[code];
  if (reason === undefined) return error;
  return new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be written: ${reason}.`, {
    details: { path, reason: error.code },
    cause: error,
  });
}
