import { appendFileSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { IndexFile } from '../../src/index/files/index-snapshot.ts';

/** A file that is complete and checked, or whose beginning is there. */
interface JournalLine {
  readonly path: string;
  /** `contentKey` a checked file. */
  readonly key?: string;
  readonly bytes?: number;
  readonly mtimeMs?: number;
  readonly inode?: number;
  /** The source's tag of a file in transfer. */
  readonly tag?: string;
}

export function contentKey({ sha256, passages }: IndexFile): string {
  return sha256 ?? `passages:${passages}`;
}

/**
 * Which files of a copy were checked, so that the next run need not read them again. A line is appended for each; the last one may be
 * cut off by a kill. A file counts as checked as long as it has the size, the time and the inode of then. A hard link, which copies get,
 * changes none of them.
 */
export class CopyJournal {
  readonly #file: string;
  readonly #folder: string;
  readonly #lines = new Map<string, JournalLine>();

  constructor(file: string, folder: string) {
    this.#file = file;
    this.#folder = folder;
    for (const line of readLines(file)) this.#lines.set(line.path, line);
  }

  /** Whether the file was checked with this content and has not changed since. */
  isChecked(file: IndexFile): boolean {
    const line = this.#lines.get(file.path);
    if (line?.key !== contentKey(file)) return false;
    const stats = statSync(join(this.#folder, file.path), { throwIfNoEntry: false });
    return (
      stats?.isFile() === true &&
      stats.size === line.bytes &&
      stats.mtimeMs === line.mtimeMs &&
      stats.ino === line.inode
    );
  }

  /** The files that were checked, which may have changed since. */
  files(): IndexFile[] {
    return [...this.#lines.values()].flatMap(({ path, key }) => {
      if (key === undefined) return [];
      const [, passages] = /^passages:(.+)$/.exec(key) ?? [];
      return [{ path, bytes: null, ...(passages === undefined ? { sha256: key } : { sha256: null, passages }) }];
    });
  }

  tagOf(path: string): string | undefined {
    return this.#lines.get(path)?.tag;
  }

  begin(path: string, tag: string): void {
    this.#append({ path, tag });
  }

  checked(file: IndexFile): void {
    const { size, mtimeMs, ino } = statSync(join(this.#folder, file.path));
    this.#append({ path: file.path, key: contentKey(file), bytes: size, mtimeMs, inode: ino });
  }

  #append(line: JournalLine): void {
    // The line end first: what a kill left of the line before does not spoil this one.
    appendFileSync(this.#file, `\n${JSON.stringify(line)}`);
    this.#lines.set(line.path, line);
  }
}

/** None if the journal is missing or cannot be read. Every file is then read and compared again. */
function readLines(file: string): JournalLine[] {
  try {
    return readFileSync(file, 'utf8').split('\n').flatMap(parseLine);
  } catch {
    return [];
  }
}

function parseLine(text: string): JournalLine[] {
  try {
    const line = JSON.parse(text) as JournalLine;
    return typeof line.path === 'string' ? [line] : [];
  } catch {
    return [];
  }
}
