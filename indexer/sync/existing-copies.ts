import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import { fileProblem } from './check-file.ts';
import type { CopiesFolder } from './copies-folder.ts';

export interface ExistingCopiesOptions {
  /** Reads all files at the destination again, also those that an earlier run checked. */
  readonly check: boolean;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/** A complete copy of the snapshot, the current one first, and those that are no longer what they were. */
export async function existingCopies(
  folder: CopiesFolder,
  snapshot: IndexSnapshot,
  { check, signal, note }: ExistingCopiesOptions,
): Promise<{ readonly intact: string | undefined; readonly damaged: readonly string[] }> {
  const current = folder.current();
  const names = [...(current === undefined ? [] : [current]), ...folder.copies().filter((name) => name !== current)];
  const damaged: string[] = [];
  for (const name of names.filter((each) => folder.has(each, snapshot))) {
    const problem = await copyProblem(folder, name, snapshot, { check, signal });
    if (problem === undefined) return { intact: name, damaged };
    note(`${folder.folderOf(name)} has changed since it was copied (${problem}); a new copy is made.`);
    damaged.push(name);
  }
  return { intact: undefined, damaged };
}

async function copyProblem(
  folder: CopiesFolder,
  name: string,
  snapshot: IndexSnapshot,
  { check, signal }: Pick<ExistingCopiesOptions, 'check' | 'signal'>,
): Promise<string | undefined> {
  const journal = folder.journal(name);
  for (const file of snapshot.files) {
    const isChecked = journal.isChecked(file);
    if (isChecked && !check) continue;
    if (!existsSync(join(folder.folderOf(name), file.path))) return `${file.path} is missing`;
    const problem = await fileProblem(folder.folderOf(name), file, snapshot, signal);
    if (problem !== undefined) return `${file.path}: ${problem}`;
    // An index that was moved among the copies has no journal yet.
    if (!isChecked) journal.checked(file);
  }
  return undefined;
}
