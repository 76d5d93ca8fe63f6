import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { sha256OfFile } from '../file-checksum.ts';

/** Lower-case hex SHA-256 of texts written one after another. */
export function sha256OfText(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** Finished and running computations by path, size and time of change; a process meets a handful of model files. */
const known = new Map<string, Promise<string>>();

/** As `sha256OfFile`, computed once per process for a file that has not changed since. */
export async function cachedSha256OfFile(path: string): Promise<string> {
  const { size, mtimeMs, ino } = await stat(path);
  const key = `${path}\0${size}\0${mtimeMs}\0${ino}`;
  let sha256 = known.get(key);
  if (sha256 === undefined) {
    sha256 = sha256OfFile(path);
    known.set(key, sha256);
    // A failed read must not be remembered.
    sha256.catch(() => known.delete(key));
  }
  return sha256;
}
