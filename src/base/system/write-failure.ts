import { isNodeError, TrawlError } from '../errors.ts';

/** What the user can fix, by the error codes of Node.js and SQLite. */
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

const FULL: Readonly<Record<string, string>> = {
  ENOSPC: 'no space left on the disk',
  EFBIG: 'no space left on the disk',
  SQLITE_FULL: 'no space left on the disk',
  EDQUOT: 'the disk quota is used up',
};

/** Translates an error of writing `path` to DISK_FULL or OUTPUT_NOT_WRITABLE; returns any other error unchanged. */
export function writeFailure(error: unknown, path: string): unknown {
  if (error instanceof TrawlError || !isNodeError(error)) return error;
  const full = FULL[error.code!];
  if (full !== undefined) {
    const message = `${path}: ${full}. Free space, or choose another path.`;
    return new TrawlError('DISK_FULL', message, { details: { path }, cause: error });
  }
  const reason = REASONS[error.code!.startsWith('SQLITE_IOERR') ? 'SQLITE_IOERR' : error.code!];
  if (reason === undefined) return error;
  return new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be written: ${reason}.`, {
    details: { path, reason: error.code },
    cause: error,
  });
}
