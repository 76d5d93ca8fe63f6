import { throwIfCancelled } from '../../base/abort.ts';
import { compareUtf8 } from '../../base/comparable-text.ts';
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
export function duplicateIds(paths: readonly string[], options: DuplicateOptions = {}): Duplicates {
  const files: PassageFile[] = [];
  try {
    for (const path of paths) files.push(new PassageFile(path));
    // SQLite counts the repeated ids of one file much faster.
    if (files.length === 1 && files[0]!.repeatedIds() === 0) return { count: 0, examples: [] };
    return compareAll(files, options);
  } finally {
    for (const file of files) file.close();
  }
}

interface IdGroup {
  readonly id: StoredId;
  /** The first places. */
  readonly places: { readonly file: PassageFile; readonly row: number; readonly rowInIndex: number }[];
  size: number;
}

function compareAll(
  files: readonly PassageFile[],
  { exampleCount = 10, liveRows, signal }: DuplicateOptions,
): Duplicates {
  const firstRows: number[] = [];
  let rows = 0;
  for (const file of files) {
    firstRows.push(rows);
    rows += file.rows;
  }
  let count = 0;
  let examples: IdGroup[] = [];
  let group: IdGroup | undefined;
  const endGroup = (): void => {
    if (group === undefined || group.size < 2) return;
    count += group.size - 1;
    examples.push(group);
    examples.sort((a, b) => a.places[0]!.rowInIndex - b.places[0]!.rowInIndex);
    examples = examples.slice(0, exampleCount);
  };
  let seen = 0;
  for (const { id, row, file } of idsOfFiles(files)) {
    if (++seen % CHECK_EVERY === 0) throwIfCancelled(signal);
    const rowInIndex = firstRows[file]! + row;
    if (liveRows?.has(rowInIndex) === false) continue;
    if (group?.id !== id) {
      endGroup();
      group = { id, places: [], size: 0 };
    }
    group.size++;
    if (group.places.length < EXAMPLE_ROWS) group.places.push({ file: files[file]!, row, rowInIndex });
  }
  endGroup();
  return {
    count,
    examples: examples.map(({ id, places }) => ({
      id: String(id),
      rows: places.map(({ rowInIndex }) => rowInIndex),
      lines: places.map(({ file, row }) => file.line(row)),
    })),
  };
}

/** The next id of one file. */
interface Head {
  readonly id: StoredId;
  readonly row: number;
  /** Number of the file. */
  readonly file: number;
}

/** Merges the ids of files: by id in SQLite's order, then by file, then by row. Holds one id a file in memory. */
function* idsOfFiles(files: readonly PassageFile[]): Generator<Head, void> {
  const rest = files.map((file) => file.idsInOrder());
  /** In falling order, so that the smallest is taken from the end. */
  const heads: Head[] = [];
  const advance = (file: number): void => {
    const next = rest[file]!.next();
    if (next.done === true) return;
    const head = { ...next.value, file };
    let [low, high] = [0, heads.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(head, heads[middle]!)) low = middle + 1;
      else high = middle;
    }
    heads.splice(low, 0, head);
  };
  try {
    for (const file of rest.keys()) advance(file);
    for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
      yield head;
      advance(head.file);
    }
  } finally {
    // SQLite cannot close a file while a query is running.
    for (const ids of rest) ids.return();
  }
}

function isBefore(a: Head, b: Head): boolean {
  if (a.id === b.id) return a.file !== b.file ? a.file < b.file : a.row < b.row;
  // SQLite's order: integers first, then text by its UTF-8 bytes.
  if (typeof a.id === 'string') return typeof b.id === 'string' && compareUtf8(a.id, b.id) < 0;
  return typeof b.id === 'string' || a.id < b.id;
}
