import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { LineSplitter, type RawLine } from '../../corpus/line-splitter.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { isNodeError } from '../../src/base/errors.ts';
import {
  idField,
  integerField,
  itemError,
  MAX_ITEM_BYTES,
  parseObject,
  type ReadItem,
  unreadable,
} from '../trajectories/read-items.ts';
import { roundKey } from './candidates-file.ts';

export type KeyedLines = Awaited<ReturnType<typeof openKeyedLines>>;

/**
 * Opens a file of utilities: JSON lines, each found by the `roundKey` of its `id` and `round_index`. Memory holds only keys and places,
 * because the lines can be in any order. Blank lines are skipped.
 *
 * @throws TrawlError CORPUS_BAD_LINE, CORPUS_NOT_FOUND, CANCELLED.
 */
export async function openKeyedLines(path: string, signal?: AbortSignal) {
  const places = new Map<string, { readonly line: number; readonly offset: number; readonly bytes: number }>();
  let lines = 0;
  let offset = 0;
  const add = ({ number, bytes, sizeBytes }: RawLine): void => {
    const place = `${path}:${number}`;
    if (bytes === null) throw itemError(place, `the line has ${sizeBytes} bytes; the limit is ${MAX_ITEM_BYTES}`);
    const start = offset;
    offset += sizeBytes + 1;
    if (number === 1 && bytes[0] === 0x1f && bytes[1] === 0x8b) {
      throw itemError(path, 'the file is gzip, and lines are read in another order: decompress it (gunzip)');
    }
    if (bytes.toString('latin1').trim() === '') return;
    lines += 1;
    const item = { value: parseObject(bytes, place), place };
    const key = roundKey(idField(item, 'id'), integerField(item, 'round_index', 1));
    places.set(key, { line: number, offset: start, bytes: sizeBytes });
  };
  let file: FileHandle;
  try {
    const splitter = new LineSplitter({ newline: 'lf', maxLineBytes: MAX_ITEM_BYTES });
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
      throwIfCancelled(signal);
      splitter.push(chunk).forEach(add);
    }
    splitter.end().forEach(add);
    file = await open(path, 'r');
  } catch (error) {
    throw isNodeError(error) && error.syscall !== undefined ? unreadable(path, error) : error;
  }
  return {
    path,
    size: places.size,
    /** Lines whose key an earlier line has. The last line counts, as in a Python dictionary. */
    repeated: lines - places.size,
    keys: (): Iterable<string> => places.keys(),
    /** The line with a key; undefined if there is none. @throws TrawlError CORPUS_BAD_LINE if the file changed meanwhile. */
    async read(key: string): Promise<ReadItem | undefined> {
      const found = places.get(key);
      if (found === undefined) return undefined;
      const bytes = Buffer.alloc(found.bytes);
      await file.read(bytes, 0, found.bytes, found.offset);
      const place = `${path}:${found.line}`;
      return { value: parseObject(bytes, place), place };
    },
    close: () => file.close(),
  };
}
