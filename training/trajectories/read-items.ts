import { isUtf8 } from 'node:buffer';
import { LineSplitter } from '../../corpus/line-splitter.ts';
import { readBytes } from '../../corpus/read-bytes.ts';
import { readingFailed, reasonOf } from '../../corpus/read-errors.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import type { Compression } from '../../src/base/files/compression.ts';
import { isObject } from '../../src/base/objects.ts';
import { ArrayError, JsonArraySplitter } from './json-array-splitter.ts';

/** Longest item. A trajectory with everything that the agent read has some hundred KiB. */
const MAX_ITEM_BYTES = 64 * 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

export interface ReadItem {
  /** For messages: `file:line`, or `file, item n` of a JSON array. */
  readonly place: string;
  readonly value: JsonObject;
}

export interface ReadItemsOptions {
  /** Items at the start that are not parsed and not returned. Default: 0. */
  readonly skip?: number;
  /** Called with the bytes of the file (compressed, if it is) as they are read. */
  readonly onBytes?: (bytes: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Reads the objects of a file, one after the other: a JSON array of objects, or JSON lines; compressed if the name ends with .gz or
 * .zst. Memory is bounded by the longest object, which may have 64 MiB.
 *
 * @throws TrawlError CORPUS_BAD_LINE for what is not an object, for a truncated array and for text that is not UTF-8;
 * CORPUS_NOT_FOUND if the file cannot be read.
 */
export async function* readItems(
  file: string,
  { skip = 0, onBytes = () => undefined, signal }: ReadItemsOptions = {},
): AsyncGenerator<ReadItem, void> {
  let number = 0;
  for await (const { bytes, line } of rawItems(file, onBytes)) {
    throwIfCancelled(signal);
    number += 1;
    if (number <= skip) continue;
    const place = line === undefined ? `${file}, item ${number}` : `${file}:${line}`;
    yield { place, value: parseObject(bytes, place) };
  }
}

/** @throws TrawlError CORPUS_BAD_LINE. */
export function parseObject(bytes: Buffer, place: string): JsonObject {
  if (!isUtf8(bytes)) throw itemError(place, 'not valid UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    // Python's json module writes NaN and Infinity, which are not JSON.
    const number = /[:,[\s](NaN|-?Infinity)\s*[,}\]]/.exec(bytes.toString('utf8'))?.[1];
    const reason = number === undefined ? 'not valid JSON' : `has ${number}, which is not a number of JSON`;
    throw itemError(place, reason, error);
  }
  if (isObject(value)) return value as JsonObject;
  throw itemError(place, 'expected a JSON object');
}

/** The error for an unusable item. */
export function itemError(place: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('CORPUS_BAD_LINE', `${place}: ${reason}.`, { details: { place }, cause });
}

/** The error for a file that cannot be read. */
export function unreadable(file: string, error: unknown): TrawlError {
  return new TrawlError(
    'CORPUS_NOT_FOUND',
    `Cannot read ${file}: ${reasonOf(error)}. Check the path and its permissions.`,
    { details: { path: file }, cause: error },
  );
}

interface RawItem {
  readonly bytes: Buffer;
  /** Undefined in a JSON array. */
  readonly line: number | undefined;
}

async function* rawItems(file: string, onBytes: (bytes: number) => void): AsyncGenerator<RawItem, void> {
  let split: Splitter | undefined;
  try {
    for await (const chunk of withoutByteOrderMark(
      readBytes(file, { compression: compressionOf(file), onRead: ({ length }) => onBytes(length) }),
    )) {
      split ??= splitterFor(file, chunk);
      yield* split?.push(chunk) ?? [];
    }
    yield* split?.end() ?? [];
  } catch (error) {
    throw isNodeError(error) && error.syscall !== undefined ? unreadable(file, error) : readingFailed(file, 1, error);
  }
}

function compressionOf(file: string): Compression {
  if (/\.gz$/i.test(file)) return 'gzip';
  return /\.zst$/i.test(file) ? 'zstd' : 'none';
}

async function* withoutByteOrderMark(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let first = true;
  for await (const chunk of chunks) {
    yield first && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk;
    first = false;
  }
}

interface Splitter {
  push(chunk: Buffer): Iterable<RawItem>;
  end(): Iterable<RawItem>;
}

/** The first byte that is not white space decides; undefined while there is none. */
function splitterFor(file: string, chunk: Buffer): Splitter | undefined {
  const start = chunk.toString('latin1').trimStart();
  if (start === '') return undefined;
  return start.startsWith('[') ? arraySplitter(file) : lineSplitter(file);
}

function arraySplitter(file: string): Splitter {
  const splitter = new JsonArraySplitter(MAX_ITEM_BYTES);
  let items = 0;
  const checked = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      if (error instanceof ArrayError) throw itemError(`${file}, after item ${items}`, error.message, error);
      throw error;
    }
  };
  return {
    push: (chunk) =>
      checked(() => splitter.push(chunk)).map((bytes) => {
        items += 1;
        return { bytes, line: undefined };
      }),
    end: () => {
      checked(() => splitter.end());
      return [];
    },
  };
}

function lineSplitter(file: string): Splitter {
  const splitter = new LineSplitter({ newline: 'lf', maxLineBytes: MAX_ITEM_BYTES });
  const items = (lines: ReturnType<LineSplitter['push']>): RawItem[] =>
    lines.flatMap(({ number, bytes, sizeBytes }) => {
      if (bytes === null)
        throw itemError(`${file}:${number}`, `the line has ${sizeBytes} bytes; the limit is ${MAX_ITEM_BYTES}`);
      return bytes.toString('latin1').trim() === '' ? [] : [{ bytes, line: number }];
    });
  return { push: (chunk) => items(splitter.push(chunk)), end: () => items(splitter.end()) };
}
