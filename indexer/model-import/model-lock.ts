import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';

/**
 * Runs `work` while this process holds a lock on the file at `path`, which is removed afterwards.
 *
 * @param held the message for a lock that another process holds, and the folder that the lock is for.
 * @throws TrawlError MODEL_LOCKED, OUTPUT_NOT_WRITABLE, DISK_FULL; the errors of `work`.
 */
export async function withModelLock<T>(
  path: string,
  held: { readonly message: string; readonly folder: string },
  work: () => Promise<T>,
): Promise<T> {
  const lock = await acquire(path);
  if (lock === undefined) throw new TrawlError('MODEL_LOCKED', held.message, { details: { folder: held.folder } });
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
    lock.release();
  }
}

async function acquire(path: string): Promise<FileLock | undefined> {
  try {
    await mkdir(dirname(path), { recursive: true });
    return FileLock.acquire(path, 'exclusive');
  } catch (error) {
    const failure = writeFailure(error, path);
    if (failure instanceof TrawlError) throw failure;
    const message = `${path} cannot be written: ${(error as Error).message}.`;
    throw new TrawlError('OUTPUT_NOT_WRITABLE', message, { cause: error });
  }
}
