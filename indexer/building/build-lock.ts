import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { FileLock, type LockMode } from '../../src/base/system/file-lock.ts';

/** The locked file. It is always empty. */
const LOCK_FILE = 'build.lock';
/** Names the process that holds the lock, for messages. */
const OWNER_FILE = 'build.owner';

/** The files of a lock. They are not part of the index. */
export const LOCK_FILES: readonly string[] = [LOCK_FILE, OWNER_FILE];

/**
 * Locks a folder against other builds. Jobs that build one shard each hold a `shared` lock on the folder of the index and an
 * `exclusive` lock on the folder of their shard.
 */
export class BuildLock {
  readonly #lock: FileLock;

  private constructor(lock: FileLock) {
    this.#lock = lock;
  }

  /** The lock ends with its process. @throws TrawlError BUILD_LOCKED while another process holds it. */
  static acquire(folder: string, mode: LockMode): BuildLock {
    const lock = FileLock.acquire(join(folder, LOCK_FILE), mode);
    if (lock === undefined) {
      const owner = ownerOf(folder);
      throw new TrawlError(
        'BUILD_LOCKED',
        `${owner === undefined ? 'Another process' : `Process ${owner.pid} on ${owner.host}`} is building ${folder}. Wait ` +
          'for it, stop it, or choose another --out.',
        { details: { folder, ...owner } },
      );
    }
    if (mode === 'exclusive') {
      writeFileSync(join(folder, OWNER_FILE), JSON.stringify({ host: hostname(), pid: process.pid }));
    }
    return new BuildLock(lock);
  }

  release(): void {
    this.#lock.release();
  }
}

/** Removes the files of a lock. No other process may hold it. */
export function removeLockFiles(folder: string): void {
  for (const name of LOCK_FILES) rmSync(join(folder, name), { force: true });
}

/** Removes everything except the lock files from a folder that this process has locked. */
export async function clearFolder(folder: string): Promise<void> {
  for (const name of readdirSync(folder)) {
    if (!LOCK_FILES.includes(name)) await rm(join(folder, name), { recursive: true, force: true });
  }
}

function ownerOf(folder: string): { host: string; pid: number } | undefined {
  try {
    const { host, pid } = JSON.parse(readFileSync(join(folder, OWNER_FILE), 'utf8')) as { host: string; pid: number };
    return { host, pid };
  } catch {
    return undefined;
  }
}
