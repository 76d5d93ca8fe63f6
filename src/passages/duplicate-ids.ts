import { throwIfCancelled } from '../abort.ts';
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

export interface DuplicateOptions {
  readonly exampleCount?: number;
  /** Rows to compare, numbered over all files. Default: all. */
  readonly liveRows?: { has(row: number): boolean } | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Limit of the rows listed per repeated id. */
const EXAMPLE_ROWS = 5;
/** Ids between two checks of the signal. */
const CHECK_EVERY = 100_000;

/** The next id of one file. */
interface Head {
  id: StoredId;
  row: number;
  readonly file: number;
  readonly rest: Generator<{ id: StoredId; row: number }, void>;
}

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
  const heap: Head[] = [];
  for (const [i, file] of files.entries()) {
    const rest = file.idsInOrder();
    const first = rest.next();
    if (first.done !== true) heap.push({ ...first.value, file: i, rest });
  }
  for (let at = (heap.length >> 1) - 1; at >= 0; at--) siftDown(heap, at);
  let examples: { id: StoredId; rows: [file: number, row: number][] }[] = [];
  let count = 0;
  let seen = 0;
  let group: { id: StoredId; rows: [file: number, row: number][]; size: number } | undefined;
  const globalRow = ([file, row]: [number, number]): number => firstRows[file]! + row;
  const endGroup = (): void => {
    if (group === undefined || group.size < 2) return;
    count += group.size - 1;
    examples.push({ id: group.id, rows: group.rows });
    examples.sort((a, b) => globalRow(a.rows[0]!) - globalRow(b.rows[0]!));
    examples = examples.slice(0, exampleCount);
  };
  while (heap.length > 0) {
    if (++seen % CHECK_EVERY === 0 && signal?.aborted === true) {
      // SQLite cannot close a file while a query is running.
      for (const { rest } of heap) rest.return();
      throwIfCancelled(signal);
    }
    const head = heap[0]!;
    if (group === undefined || head.id !== group.id) {
      endGroup();
      group = { id: head.id, rows: [], size: 0 };
    }
    if (liveRows === undefined || liveRows.has(globalRow([head.file, head.row]))) {
      group.size++;
      if (group.rows.length < EXAMPLE_ROWS) group.rows.push([head.file, head.row]);
    }
    const next = head.rest.next();
    if (next.done === true) {
      const last = heap.pop()!;
      if (last !== head) heap[0] = last;
    } else {
      head.id = next.value.id;
      head.row = next.value.row;
    }
    if (heap.length > 1) siftDown(heap, 0);
  }
  endGroup();
  return {
    count,
    examples: examples.map(({ id, rows }) => ({
      id: String(id),
      rows: rows.map(globalRow),
      lines: rows.map(([file, row]) => files[file]!.line(row)),
    })),
  };
}

function siftDown(heap: Head[], from: number): void {
  const item = heap[from]!;
  let at = from;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
    if (!isBefore(heap[child]!, item)) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = item;
}

function isBefore(a: Head, b: Head): boolean {
  const order = compareIds(a.id, b.id);
  return order !== 0 ? order < 0 : a.file !== b.file ? a.file < b.file : a.row < b.row;
}

/** SQLite's order: integers first, then text by its UTF-8 bytes. */
function compareIds(a: StoredId, b: StoredId): number {
  if (typeof a !== 'string') return typeof b !== 'string' ? (a < b ? -1 : a > b ? 1 : 0) : -1;
  if (typeof b !== 'string') return 1;
  if (a === b) return 0;
  const end = Math.min(a.length, b.length);
  let i = 0;
  while (i < end && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  if (i === end) return a.length - b.length;
  return utf8Rank(a.charCodeAt(i)) - utf8Rank(b.charCodeAt(i));
}

/** Surrogates encode characters beyond U+FFFF, whose UTF-8 sorts after that of every other code unit. */
function utf8Rank(unit: number): number {
  return unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit;
}
