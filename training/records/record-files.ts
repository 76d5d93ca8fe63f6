import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';

/** A file of records that is open for reading. Its reader closes the handle. */
export interface RecordFileHandle {
  readonly path: string;
  readonly handle: FileHandle;
}

interface ListedFile {
  readonly path: string;
  /** Number of rotations since it was written: 0 for the file itself. */
  readonly age: number;
  readonly compressed: boolean;
}

/** Changes of a set while it is opened before the set counts as unreadable. A rotation takes microseconds. */
const MAX_TRIES = 20;

/**
 * Opens files of `--record` and the rotated files of each (`path.1`, `path.2.zst`, …), oldest first; one list per path. All are opened before any is
 * read: a server that rotates them meanwhile neither hides nor repeats lines. A file that several paths lead to is opened once.
 *
 * @throws TrawlError CORPUS_NOT_FOUND.
 */
export async function openRecordSets(paths: readonly string[]): Promise<RecordFileHandle[][]> {
  const sets: RecordFileHandle[][] = [];
  const known = new Set<string>();
  try {
    for (const path of paths) {
      const set: RecordFileHandle[] = [];
      sets.push(set);
      for (const file of await openSet(path)) {
        const { dev, ino } = await file.handle.stat({ bigint: true });
        if (known.has(`${dev}:${ino}`)) {
          await file.handle.close();
          continue;
        }
        known.add(`${dev}:${ino}`);
        set.push(file);
      }
    }
  } catch (error) {
    await closeAll(sets.flat());
    throw error;
  }
  return sets;
}

async function openSet(path: string): Promise<RecordFileHandle[]> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const files = await listSet(path);
    if (files.length === 0) throw unreadable(path, 'no such file');
    const opened = await openAll(files);
    // A rotation or compression between listing and opening could hide a file, or give one twice.
    if (opened !== undefined && (await isUnchanged(path, files, opened))) return opened;
    await closeAll(opened ?? []);
  }
  throw unreadable(path, 'its files are renamed all the time');
}

async function listSet(path: string): Promise<ListedFile[]> {
  const name = basename(path);
  let names: string[];
  try {
    names = await readdir(dirname(path));
  } catch (error) {
    throw unreadable(path, reasonOf(error), error);
  }
  const files: ListedFile[] = [];
  for (const found of names) {
    if (found === name) files.push({ path, age: 0, compressed: false });
    else if (found.startsWith(`${name}.`)) {
      const match = /^(\d{1,5})(\.zst|\.gz)?$/.exec(found.slice(name.length + 1));
      if (match === null) continue;
      const [, age, suffix] = match;
      files.push({ path: join(dirname(path), found), age: Number(age), compressed: suffix !== undefined });
    }
  }
  // A kill between the compression of a file and its removal leaves both; they have the same lines.
  const plain = new Set(files.flatMap(({ age, compressed }) => (compressed ? [] : [age])));
  return files.filter(({ age, compressed }) => !(compressed && plain.has(age))).sort((a, b) => b.age - a.age);
}

/** Undefined if a file is gone. */
async function openAll(files: readonly ListedFile[]): Promise<RecordFileHandle[] | undefined> {
  const opened: RecordFileHandle[] = [];
  for (const { path } of files) {
    try {
      const handle = await open(path, 'r');
      opened.push({ path, handle });
      if (!(await handle.stat()).isFile()) throw unreadable(path, 'it is not a regular file');
    } catch (error) {
      await closeAll(opened);
      if (isNodeError(error) && error.code === 'ENOENT') return undefined;
      throw error instanceof TrawlError ? error : unreadable(path, reasonOf(error), error);
    }
  }
  return opened;
}

async function isUnchanged(
  path: string,
  files: readonly ListedFile[],
  opened: readonly RecordFileHandle[],
): Promise<boolean> {
  const now = await listSet(path);
  if (now.length !== files.length) return false;
  for (const [i, { path: named }] of now.entries()) {
    if (named !== opened[i]!.path) return false;
    const [here, there] = await Promise.all([opened[i]!.handle.stat(), stat(named).catch(() => undefined)]);
    if (there?.ino !== here.ino || there.dev !== here.dev) return false;
  }
  return true;
}

export async function closeAll(files: readonly RecordFileHandle[]): Promise<void> {
  await Promise.all(files.map(({ handle }) => handle.close().catch(() => undefined)));
}

function unreadable(path: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('CORPUS_NOT_FOUND', `The records ${path} cannot be read: ${reason}. Check the path.`, {
    details: { path },
    cause,
  });
}

function reasonOf(error: unknown): string {
  if (isNodeError(error) && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return 'no such file or folder';
  if (isNodeError(error) && (error.code === 'EACCES' || error.code === 'EPERM')) return 'permission denied';
  return error instanceof Error ? error.message : String(error);
}
