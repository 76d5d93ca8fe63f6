import { copyFile, link, mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isNodeError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';

/** Makes a second name for a file, or a copy where the file system has no hard links. False if it is gone. */
export async function linkFile(from: string, to: string): Promise<boolean> {
  try {
    await mkdir(dirname(to), { recursive: true });
    await rm(to, { force: true });
    await link(from, to);
  } catch (error) {
    if (!isNodeError(error)) throw error;
    if (error.code === 'ENOENT') return false;
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK', 'ENOSYS', 'EXDEV'].includes(error.code!))
      throw writeFailure(error, to);
    await copyFile(from, to).catch((failure: unknown) => {
      throw writeFailure(failure, to);
    });
  }
  return true;
}
