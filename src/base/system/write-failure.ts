import { isNodeError, TrawlError } from '../errors.ts';

/** Errors that the user can fix, by the codes of Node and SQLite. */
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'the file cannot be created (does its parent folder exist?)',
  EEXIST: 'it already exists',
  ENOTDIR: 'a part of the path is a file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'the operation is not permitted',
  EROFS: 'the file system is read-only',
  EBUSY: 'it is in use by another program',
  ENAMETOOLONG: 'the name is too long',
  EIO: 'the disk reports an error',
  SQLITE_CANTOPEN: 'SQLite cannot open a file there',
  SQLITE_READONLY: 'the file is read-only',
  SQLITE_IOERR: 'the disk reports an error',
};

const FULL = new Set(['ENOSPC', 'EFBIG', 'SQLITE_FULL']);

/** Translates an error of writing `path` to DISK_FULL or OUTPUT_NOT_WRITABLE; returns any other error unchanged. */
export function writeFailure(error: unknown, path: string): unknown {
  if (error instanceof TrawlError || !isNodeError(error)) return error;
  if (FULL.has(error.code!)) {
    return new TrawlError('DISK_FULL', `${path}: no space left on the disk. Free some, or choose another path.`, {
      details: { path },
      cause: error,
    });
  }
  if (error.code === 'EDQUOT') {
    return new TrawlError('DISK_FULL', `${path}: the disk quota is used up. Free space, or choose another path.`, {
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
