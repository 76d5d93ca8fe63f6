import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { IterationsFolder } from './iterations-folder.ts';
import { readJournal, writeHistory } from './records.ts';

/**
 * Removes the files of all iterations but `keep`: the one that is served, the one that was served before it, the one that somebody went
 * back from, the one that an unfinished iteration is compared with, then the newest ones. The first four stay even if `keep` is smaller.
 * Also removes what discarded iterations left. The index that the loop began with is never removed. The caller holds the lock of
 * publishing.
 *
 * @param keep at least 2.
 * @returns the numbers of the removed iterations.
 */
export async function pruneIterations(folder: IterationsFolder, keep: number): Promise<number[]> {
  const { history } = folder;
  const current = folder.current();
  const own = history.iterations.filter(({ kept, number }) => kept && number > 0).map(({ number }) => number);
  const inUse = [current.number, current.base, history.left, readJournal(folder.root)?.base];
  const kept = new Set(inUse.filter((number) => typeof number === 'number'));
  for (const number of own.toReversed()) if (kept.size < keep) kept.add(number);
  const removed = own.filter((number) => !kept.has(number));
  if (removed.length > 0) {
    // First the record, so that a killed run leaves a folder that nobody uses, not an iteration without files.
    await writeHistory(folder.root, {
      ...history,
      iterations: history.iterations.map((iteration) =>
        removed.includes(iteration.number) ? { ...iteration, kept: false } : iteration,
      ),
    });
  }
  await removeUnknownFolders(folder);
  return removed;
}

/** Removes folders of iterations that are neither kept nor unfinished. A number that was never given is somebody else's folder. */
export async function removeUnknownFolders(folder: IterationsFolder): Promise<void> {
  const { next, iterations } = folder.history;
  const known = new Set(iterations.filter(({ kept }) => kept).map(({ number }) => number));
  const unfinished = readJournal(folder.root)?.number;
  if (unfinished !== undefined) known.add(unfinished);
  const parent = join(folder.root, 'iterations');
  const names = existsSync(parent) ? readdirSync(parent) : [];
  for (const name of names) {
    if (/^\d{4,}$/.test(name) && Number(name) < next && !known.has(Number(name)))
      await rm(join(parent, name), { recursive: true, force: true });
  }
}
