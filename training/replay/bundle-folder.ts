import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';

/**
 * The folder `<out>.partial`, which is renamed to `<out>` once the bundle in it is complete, so `<out>` is always a complete bundle. The
 * next run empties the folder of a killed one. The lock file is beside it. The answers contain users' queries: only the owner may open the
 * folder.
 */
export class BundleFolder {
  readonly final: string;
  readonly folder: string;
  readonly #lock: FileLock;
  readonly #lockPath: string;

  private constructor(final: string, lockPath: string, lock: FileLock) {
    this.final = final;
    this.folder = `${final}.partial`;
    this.#lockPath = lockPath;
    this.#lock = lock;
  }

  /** @throws TrawlError OUTPUT_EXISTS if the path exists or another run writes it, OUTPUT_NOT_WRITABLE or DISK_FULL. */
  static async create(out: string): Promise<BundleFolder> {
    const final = resolve(out);
    const lockPath = `${final}.lock`;
    let lock: FileLock | undefined;
    try {
      refuseExisting(final);
      await mkdir(dirname(final), { recursive: true });
      lock = FileLock.acquire(lockPath, 'exclusive');
      if (lock === undefined) {
        throw new TrawlError('OUTPUT_EXISTS', `Another run writes ${final}. Let it end, or choose another --bundle.`);
      }
      // Another run may have ended between the check and the lock.
      refuseExisting(final);
      const made = new BundleFolder(final, lockPath, lock);
      await rm(made.folder, { recursive: true, force: true });
      await mkdir(made.folder, { mode: 0o700 });
      return made;
    } catch (error) {
      lock?.release();
      throw writeFailure(error, final);
    }
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Renames the complete folder, whose files are synced to disk. */
  async publish(): Promise<void> {
    await syncFolder(this.folder);
    // An empty folder can be replaced.
    await rename(this.folder, this.final);
    await syncFolder(dirname(this.final));
    await this.#unlock();
  }

  async discard(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    await this.#unlock();
  }

  async #unlock(): Promise<void> {
    await rm(this.#lockPath, { force: true });
    this.#lock.release();
  }
}

function refuseExisting(final: string): void {
  if (!existsSync(final) || isEmptyFolder(final)) return;
  throw new TrawlError('OUTPUT_EXISTS', `${final} already exists. Choose another --bundle, or remove it.`);
}

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}
