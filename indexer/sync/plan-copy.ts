import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HeldIndex } from '../../src/index/files/held-index.ts';
import type { IndexFile, IndexSnapshot } from '../../src/index/files/index-snapshot.ts';
import type { CopiesFolder } from './copies-folder.ts';
import { contentKey } from './copy-journal.ts';
import type { CopySource } from './copy-source.ts';

/** A file at the destination that has the content of a file of the source. */
interface EqualFile {
  readonly path: string;
  readonly bytes: number;
  /** Whether an earlier run compared its checksum. */
  readonly checked: boolean;
}

interface PlannedFile {
  readonly file: IndexFile;
  readonly bytes: number;
  /** Where it is already: in the unfinished copy itself, or in another copy. */
  readonly present: 'here' | EqualFile | undefined;
}

export interface CopyPlan {
  readonly files: readonly PlannedFile[];
  /** Bytes still to be transferred, without what an earlier run has transferred. */
  readonly missingBytes: number;
}

export async function planCopy(
  folder: CopiesFolder,
  snapshot: IndexSnapshot,
  source: CopySource,
  signal: AbortSignal,
): Promise<CopyPlan> {
  const staging = folder.staging(snapshot.id);
  const journal = folder.journal(staging);
  const equal = await equalFiles(folder, staging);
  const files: PlannedFile[] = [];
  let missingBytes = 0;
  for (const file of snapshot.files) {
    const bytes = file.bytes ?? (await source.facts(file.path, signal)).bytes;
    const candidates = equal.get(contentKey(file)) ?? [];
    const found =
      candidates.find((each) => each.bytes === bytes && each.checked) ??
      candidates.find((each) => each.bytes === bytes);
    const present = journal.isChecked(file) ? 'here' : found;
    if (present === undefined) {
      const begun = statSync(join(folder.folderOf(staging), file.path), { throwIfNoEntry: false })?.size ?? 0;
      missingBytes += Math.max(0, bytes - begun);
    }
    files.push({ file, bytes, present });
  }
  return { files, missingBytes };
}

/** The files of all copies, finished or not, and of an index at the destination, by `contentKey`. */
async function equalFiles(folder: CopiesFolder, staging: string): Promise<Map<string, EqualFile[]>> {
  const found = new Map<string, EqualFile[]>();
  const add = (file: IndexFile, path: string, checked: boolean): void => {
    const bytes = statSync(path, { throwIfNoEntry: false })?.size;
    if (bytes === undefined) return;
    const key = contentKey(file);
    found.set(key, [...(found.get(key) ?? []), { path, bytes, checked }]);
  };
  for (const name of [...folder.copies(), ...folder.unfinished()]) {
    if (name === staging) continue;
    const journal = folder.journal(name);
    for (const file of journal.files()) add(file, join(folder.folderOf(name), file.path), journal.isChecked(file));
  }
  if (folder.isIndex() && existsSync(folder.destination)) {
    const held = await HeldIndex.open(folder.destination).catch(() => undefined);
    for (const file of held?.snapshot.files ?? []) add(file, join(folder.destination, file.path), false);
    await held?.close();
  }
  return found;
}
