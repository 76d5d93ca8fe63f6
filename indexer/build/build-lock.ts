import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/errors.ts';
import { FileLock, type LockMode } from '../../src/file-lock.ts';

/** What is locked, and never holds anything. */
const LOCK_FILE = 'build.lock';
/** Who holds the lock, for a message. */
const OWNER_FILE = 'build.owner';

/** Files of a lock: no part of what is built. */
export const LOCK_FILES: readonly string[] = [LOCK_FILE, OWNER_FILE];

/**
 * Keeps a folder for one builder. Jobs that each build a shard hold the folder of the whole together (`shared`), and
 * their shard's alone.
 */
export class BuildLock {
  readonly #lock: FileLock;

  private constructor(lock: FileLock) {
    this.#lock = lock;
  }

  /** @throws TrawlError BUILD_LOCKED while another process is at work there; a dead one keeps nobody out. */
  static acquire(folder: string, mode: LockMode): BuildLock {
    const lock = FileLock.acquire(join(folder, LOCK_FILE), mode);
    if (lock === undefined) {
      const owner = ownerOf(folder);
      throw new TrawlError(
        'BUILD_LOCKED',
        `${owner === undefined ? 'Another process' : `Process ${owner.pid} on ${owner.host}`} is building ${folder} at ` +
          'this moment. Wait for it, stop it, or choose another --out.',
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

/** Removes the files of a lock that this process holds, or that nobody holds any more. */
export function removeLockFiles(folder: string): void {
  for (const name of LOCK_FILES) rmSync(join(folder, name), { force: true });
}

function ownerOf(folder: string): { host: string; pid: number } | undefined {
  try {
    const { host, pid } = JSON.parse(readFileSync(join(folder, OWNER_FILE), 'utf8')) as { host: string; pid: number };
    return { host, pid };
  } catch {
    return undefined;
  }
}
