import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { sha256OfFile } from '../../base/system/file-checksum.ts';

/** SHA-256 of a text in UTF-8, lower-case hex. */
export function sha256OfText(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Finished and running computations by path, size, modification time and inode. Never evicted: a process opens few models. */
const known = new Map<string, Promise<string>>();

/** Like `sha256OfFile`, but reads an unchanged file only once per process. */
export async function cachedSha256OfFile(path: string): Promise<string> {
  const { size, mtimeMs, ino } = await stat(path);
  const key = `${path}\0${size}\0${mtimeMs}\0${ino}`;
  let sha256 = known.get(key);
  if (sha256 === undefined) {
    sha256 = sha256OfFile(path);
    known.set(key, sha256);
    // The next call tries again after a failure.
    sha256.catch(() => known.delete(key));
  }
  return sha256;
}
