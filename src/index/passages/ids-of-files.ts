import type { PassageFile, StoredId } from './passage-file.ts';

/** The next id of one file. */
interface Head {
  id: StoredId;
  row: number;
  /** Number of the file. */
  readonly file: number;
  readonly rest: Generator<{ id: StoredId; row: number }, void>;
}

/**
 * Merges the ids of files: by id in SQLite's order, then by file, then by row. Holds one id a file in memory; the object that
 * it yields is overwritten afterwards.
 *
 * @throws TrawlError the errors of `PassageFile`.
 */
export function* idsOfFiles(files: readonly PassageFile[]): Generator<Readonly<Omit<Head, 'rest'>>, void> {
  const heap: Head[] = [];
  try {
    for (const [i, file] of files.entries()) {
      const rest = file.idsInOrder();
      const first = rest.next();
      if (first.done !== true) heap.push({ ...first.value, file: i, rest });
    }
    for (let at = (heap.length >> 1) - 1; at >= 0; at--) siftDown(heap, at);
    while (heap.length > 0) {
      const head = heap[0]!;
      yield head;
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
  } finally {
    // SQLite cannot close a file while a query is running.
    for (const { rest } of heap) rest.return();
  }
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

/** Surrogates encode characters beyond U+FFFF, whose UTF-8 sorts after the UTF-8 of every other code unit. */
function utf8Rank(unit: number): number {
  return unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit;
}
