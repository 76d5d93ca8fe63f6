import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';

/** Reserves a folder for one `trawl model add`: that of the new model, or that of the downloaded checkpoint. */
export class ModelLock {
  readonly #path: string;
  readonly #lock: FileLock;

  private constructor(path: string, lock: FileLock) {
    this.#path = path;
    this.#lock = lock;
  }

  /**
   * Locks the file at `path`, to reserve `folder`.
   *
   * @throws TrawlError MODEL_LOCKED, OUTPUT_NOT_WRITABLE.
   */
  static async acquire(path: string, folder: string): Promise<ModelLock> {
    let lock: FileLock | undefined;
    try {
      await mkdir(dirname(path), { recursive: true });
      lock = FileLock.acquire(path, 'exclusive');
    } catch (error) {
      if (error instanceof TrawlError) throw error;
      throw new TrawlError('OUTPUT_NOT_WRITABLE', `${path} cannot be written: ${(error as Error).message}.`, {
        cause: error,
      });
    }
    if (lock !== undefined) return new ModelLock(path, lock);
    throw new TrawlError(
      'MODEL_LOCKED',
      `Another \`trawl model add\` is working on ${folder}. Wait until it has finished, or stop it.`,
      { details: { folder } },
    );
  }

  /** Also removes the lock file. */
  async release(): Promise<void> {
    await rm(this.#path, { force: true });
    this.#lock.release();
  }
}
