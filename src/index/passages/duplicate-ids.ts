import { throwIfCancelled } from '../../base/abort.ts';
import { idsOfFiles } from './ids-of-files.ts';
import { PassageFile, type StoredId } from './passage-file.ts';

interface DuplicateId {
  readonly id: string;
  /** The first rows with this id, ascending, numbered over all files. */
  readonly rows: readonly number[];
  /** Their lines in the corpus. */
  readonly lines: readonly number[];
}

export interface Duplicates {
  /** Passages with the id of an earlier passage. */
  readonly count: number;
  /** The first few repeated ids. */
  readonly examples: readonly DuplicateId[];
}

interface DuplicateOptions {
  readonly exampleCount?: number;
  /** Rows to compare, numbered over all files. Default: all. */
  readonly liveRows?: { has(row: number): boolean };
  readonly signal?: AbortSignal;
}

/** Limit of the rows listed per repeated id. */
const EXAMPLE_ROWS = 5;
/** Ids between two checks of the signal. */
const CHECK_EVERY = 100_000;

/**
 * Finds repeated ids. `paths`: the complete passage files of an index in row order. Merges the files' indexes over ids, so
 * memory does not grow with the corpus.
 *
 * @throws TrawlError the errors of `PassageFile`; CANCELLED.
 */
export function duplicateIds(
  paths: readonly string[],
  { exampleCount = 10, liveRows, signal }: DuplicateOptions = {},
): Duplicates {
  const files: PassageFile[] = [];
  try {
    let firstRow = 0;
    const firstRows: number[] = [];
    for (const path of paths) {
      const file = new PassageFile(path, { mapped: false });
      files.push(file);
      firstRows.push(firstRow);
      firstRow += file.rows;
    }
    // SQLite counts the repeated ids of one file much faster.
    if (files.length === 1 && files[0]!.repeatedIds() === 0) return { count: 0, examples: [] };
    return merge(files, firstRows, { exampleCount, liveRows, signal });
  } finally {
    for (const file of files) file.close();
  }
}

function merge(
  files: readonly PassageFile[],
  firstRows: readonly number[],
  { exampleCount, liveRows, signal }: DuplicateOptions & { exampleCount: number },
): Duplicates {
  const groups = new IdGroups(exampleCount);
  let seen = 0;
  for (const { id, row, file } of idsOfFiles(files)) {
    if (++seen % CHECK_EVERY === 0) throwIfCancelled(signal);
    const globalRow = firstRows[file]! + row;
    if (liveRows?.has(globalRow) ?? true) groups.add(id, { file, row, globalRow });
  }
  const { count, examples } = groups.finish();
  return {
    count,
    examples: examples.map(({ id, places }) => ({
      id: String(id),
      rows: places.map(({ globalRow }) => globalRow),
      lines: places.map(({ file, row }) => files[file]!.line(row)),
    })),
  };
}

interface Place {
  readonly file: number;
  readonly row: number;
  /** The row, numbered over all files. */
  readonly globalRow: number;
}

interface IdGroup {
  readonly id: StoredId;
  /** The first places. */
  readonly places: Place[];
  size: number;
}

/** Counts the repeated ids among ids in order, and keeps those that come first in the index. */
class IdGroups {
  readonly #exampleCount: number;
  #group: IdGroup | undefined;
  #count = 0;
  #examples: IdGroup[] = [];

  constructor(exampleCount: number) {
    this.#exampleCount = exampleCount;
  }

  add(id: StoredId, place: Place): void {
    if (this.#group?.id !== id) {
      this.#endGroup();
      this.#group = { id, places: [], size: 0 };
    }
    this.#group.size++;
    if (this.#group.places.length < EXAMPLE_ROWS) this.#group.places.push(place);
  }

  finish(): { count: number; examples: readonly IdGroup[] } {
    this.#endGroup();
    return { count: this.#count, examples: this.#examples };
  }

  #endGroup(): void {
    const group = this.#group;
    if (group === undefined || group.size < 2) return;
    this.#count += group.size - 1;
    this.#examples.push(group);
    this.#examples.sort((a, b) => a.places[0]!.globalRow - b.places[0]!.globalRow);
    this.#examples = this.#examples.slice(0, this.#exampleCount);
  }
}
