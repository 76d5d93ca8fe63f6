import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { FileLock, type LockMode } from '../../src/base/system/file-lock.ts';
import { BUILD_FILE, CHECKPOINT_FILE, PASSAGES_RECORD_FILE } from '../../src/index/manifest/build-records.ts';
import { isShardFolder } from '../index-files.ts';

/** The locked file. It is always empty. */
const LOCK_FILE = 'build.lock';
/** Names the process that holds the lock, for messages. */
const OWNER_FILE = 'build.owner';

/** The records of an unfinished shard. */
export const SHARD_RECORDS: readonly string[] = [CHECKPOINT_FILE, PASSAGES_RECORD_FILE];

export const LOCK_FILES: readonly string[] = [LOCK_FILE, OWNER_FILE];

/**
 * Locks a folder against other builds. Jobs that build one shard each hold a `shared` lock on the folder of the index and an
 * `exclusive` lock on the folder of their shard. The lock ends with its process.
 *
 * @throws TrawlError BUILD_LOCKED while another process holds it.
 */
export function lockBuild(folder: string, mode: LockMode): FileLock {
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
  return lock;
}

/** Removes what a complete index does not need: the record of its build and the lock, which no other process may hold. */
export function removeWorkingFiles(folder: string): void {
  for (const name of [BUILD_FILE, ...LOCK_FILES]) rmSync(join(folder, name), { force: true });
}

/** As `removeWorkingFiles`, for a complete shard. Also removes the records that a process leaves if it is killed right after the shard. */
export function removeShardWorkingFiles(folder: string): void {
  removeWorkingFiles(folder);
  for (const name of SHARD_RECORDS) rmSync(join(folder, name), { force: true });
}

/** Whether the folder of a build, which need not exist, has a shard. */
export function hasShards(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).some(isShardFolder);
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
