import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isNodeError, TrawlError } from '../../base/errors.ts';
import { type IndexSnapshot, readSnapshot } from './index-snapshot.ts';

/** What the manifests in a folder say. Their files need not exist. @throws TrawlError INDEX_NOT_FOUND, or an error of `readSnapshot`. */
export function folderSnapshot(folder: string): Promise<IndexSnapshot> {
  return readSnapshot(folder, async (path) => {
    try {
      return await readFile(join(folder, path));
    } catch (cause) {
      if (!isNodeError(cause)) throw cause;
      throw new TrawlError(
        'INDEX_NOT_FOUND',
        `${join(folder, path)} cannot be read (${cause.code}). Check the path, or build the index again.`,
        { cause },
      );
    }
  });
}
