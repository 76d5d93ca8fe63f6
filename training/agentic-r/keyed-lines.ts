import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { LineSplitter } from '../../corpus/line-splitter.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { isNodeError } from '../../src/base/errors.ts';
import { itemError, parseObject, type ReadItem, unreadable } from '../trajectories/read-items.ts';

/** Longest line; a round has some KiB. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

interface LinePlace {
  readonly line: number;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * A file of JSON lines, each found by a key. Only the keys and places of the lines are in memory, because the files of utilities
 * can be in any order.
 */
export class KeyedLines {
  readonly path: string;
  /** Lines whose key an earlier line has. The last line counts, as in a Python dictionary. */
  readonly repeated: number;
  readonly #file: FileHandle;
  readonly #places: ReadonlyMap<string, LinePlace>;

  private constructor(path: string, file: FileHandle, places: ReadonlyMap<string, LinePlace>, repeated: number) {
    this.path = path;
    this.#file = file;
    this.#places = places;
    this.repeated = repeated;
  }

  /**
   * Reads the keys of all lines. Blank lines are skipped.
   *
   * @throws TrawlError CORPUS_BAD_LINE, also for what `keyOf` throws; CORPUS_NOT_FOUND; CANCELLED.
   */
  static async open(path: string, keyOf: (item: ReadItem) => string, signal?: AbortSignal): Promise<KeyedLines> {
    const places = new Map<string, LinePlace>();
    let lines = 0;
    let offset = 0;
    const splitter = new LineSplitter({ newline: 'lf', maxLineBytes: MAX_LINE_BYTES });
    const add = ({ number, bytes, sizeBytes }: ReturnType<LineSplitter['push']>[number]): void => {
      const place = `${path}:${number}`;
      if (bytes === null) throw itemError(place, `the line has ${sizeBytes} bytes; the limit is ${MAX_LINE_BYTES}`);
      const start = offset;
      offset += sizeBytes + 1;
      if (number === 1 && bytes[0] === 0x1f && bytes[1] === 0x8b) {
        throw itemError(path, 'the file is gzip, and lines are read in another order: decompress it (gunzip)');
      }
      if (bytes.toString('latin1').trim() === '') return;
      lines += 1;
      places.set(keyOf({ value: parseObject(bytes, place), place }), { line: number, offset: start, bytes: sizeBytes });
    };
    try {
      for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
        throwIfCancelled(signal);
        for (const line of splitter.push(chunk)) add(line);
      }
      for (const line of splitter.end()) add(line);
      return new KeyedLines(path, await open(path, 'r'), places, lines - places.size);
    } catch (error) {
      throw isNodeError(error) && error.syscall !== undefined ? unreadable(path, error) : error;
    }
  }

  get size(): number {
    return this.#places.size;
  }

  has(key: string): boolean {
    return this.#places.has(key);
  }

  keys(): Iterable<string> {
    return this.#places.keys();
  }

  /** The line with a key; undefined if there is none. @throws TrawlError CORPUS_BAD_LINE if the file changed meanwhile. */
  async read(key: string): Promise<ReadItem | undefined> {
    const found = this.#places.get(key);
    if (found === undefined) return undefined;
    const bytes = Buffer.alloc(found.bytes);
    await this.#file.read(bytes, 0, found.bytes, found.offset);
    const place = `${this.path}:${found.line}`;
    return { value: parseObject(bytes, place), place };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}
