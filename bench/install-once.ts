import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { FileLock } from '../src/base/system/file-lock.ts';

const RETRY_MS = 250;

/** Whether `installOnce` has filled the folder. */
export function isInstalled(folder: string): boolean {
  return existsSync(join(folder, '.complete'));
}

/**
 * Installs a program into a folder of the cache, unless it is there. Checkouts and commands share the cache, so only one process
 * installs at a time; the others wait, and use what it has installed. What a killed or failed installation has left is removed
 * first. `install` finds an empty folder.
 *
 * @param lock a file that two installations have in common if they may not run at the same time; default: one for each folder.
 * @throws what `install` throws; an AbortError.
 */
export async function installOnce(
  folder: string,
  { note, signal, lock = `${folder}.lock` }: { note(text: string): void; signal?: AbortSignal; lock?: string },
  install: () => Promise<void>,
): Promise<void> {
  if (isInstalled(folder)) return;
  await mkdir(dirname(folder), { recursive: true });
  const held = await waitFor(lock, {
    signal,
    onWait: () => note(`Waiting for another process, which installs (${lock})`),
  });
  try {
    if (isInstalled(folder)) return;
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    await install();
    await writeFile(join(folder, '.complete'), '');
  } finally {
    held.release();
  }
}

async function waitFor(
  path: string,
  { signal, onWait }: { signal: AbortSignal | undefined; onWait: () => void },
): Promise<FileLock> {
  for (let tries = 0; ; tries++) {
    const lock = FileLock.acquire(path, 'exclusive');
    if (lock !== undefined) return lock;
    if (tries === 0) onWait();
    await pause(RETRY_MS, undefined, { signal });
  }
}
