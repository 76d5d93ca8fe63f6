import { isUtf8 } from 'node:buffer';
import { LineSplitter } from '../../corpus/line-splitter.ts';
import { readBytes } from '../../corpus/read-bytes.ts';
import { readingFailed, reasonOf } from '../../corpus/read-errors.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { isNodeError, TrawlError } from '../../src/base/errors.ts';
import type { Compression } from '../../src/base/files/compression.ts';
import { jsonFault } from '../../src/base/files/read-json.ts';
import { isObject } from '../../src/base/objects.ts';
import { ArrayError, JsonArraySplitter } from './json-array-splitter.ts';

/** Longest item. A trajectory with everything that the agent read has some hundred KiB. */
export const MAX_ITEM_BYTES = 64 * 1024 * 1024;

export type JsonObject = Readonly<Record<string, unknown>>;

export interface ReadItem {
  /** For messages: `file:line`, or `file, item n` of a JSON array. */
  readonly place: string;
  readonly value: JsonObject;
}

export interface ReadItemsOptions {
  /** Items at the start that are not parsed and not returned. Default: 0. */
  readonly skip?: number;
  /** Called with the number of bytes of the file (compressed, if it is) that were read. */
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
    throw itemError(place, `not valid JSON (${jsonFault(bytes.toString('utf8'), error)})`, error);
  }
  if (isObject(value)) return value;
  throw itemError(place, 'expected a JSON object');
}

export function itemError(place: string, reason: string, cause?: unknown): TrawlError {
  return new TrawlError('CORPUS_BAD_LINE', `${place}: ${reason}.`, { details: { place }, cause });
}

export function unreadable(file: string, cause: unknown): TrawlError {
  const message = `Cannot read ${file}: ${reasonOf(cause)}. Check the path and its permissions.`;
  return new TrawlError('CORPUS_NOT_FOUND', message, { details: { path: file }, cause });
}

// The fields of an item with their types checked. Each function throws TrawlError CORPUS_BAD_LINE with the item's place.

export function stringField(item: ReadItem, name: string): string {
  const found = item.value[name];
  return checked(item, name, found, typeof found === 'string', 'a string');
}

/** An id: a string, or an integer up to 2^53, which becomes a string. */
export function idField(item: ReadItem, name: string): string {
  const found = item.value[name];
  return Number.isSafeInteger(found) ? String(found) : stringField(item, name);
}

/** A list of strings; empty if the field is missing or null. */
export function stringsField(item: ReadItem, name: string): readonly string[] {
  const found = item.value[name] ?? [];
  const isValid = Array.isArray(found) && found.every((text) => typeof text === 'string');
  return checked(item, name, found, isValid, 'a list of strings');
}

export function integerField(item: ReadItem, name: string, min: number): number {
  const found = item.value[name];
  return checked(
    item,
    name,
    found,
    Number.isSafeInteger(found) && (found as number) >= min,
    `a whole number from ${min}`,
  );
}

/** An object; empty if the field is missing or null. */
export function objectField(item: ReadItem, name: string): JsonObject {
  const found = item.value[name] ?? {};
  return checked(item, name, found, isObject(found), 'an object');
}

export function objectsField(item: ReadItem, name: string): readonly ReadItem[] {
  const found = item.value[name];
  const list = checked<readonly unknown[]>(item, name, found, Array.isArray(found), 'a list of objects');
  return list.map((value, i) => {
    if (isObject(value)) return { value, place: `${item.place}, ${name}[${i}]` };
    throw itemError(item.place, `"${name}"[${i}] is ${jsonType(value)}; expected an object`);
  });
}

function checked<T>({ place }: ReadItem, name: string, found: unknown, isValid: boolean, expected: string): T {
  if (isValid) return found as T;
  throw itemError(place, `"${name}" is ${jsonType(found)}; expected ${expected}`);
}

/** A value for a message, by its type only: texts of users do not belong in messages. */
export function jsonType(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'string' ? 'a string' : 'an object';
}

interface RawItem {
  readonly bytes: Buffer;
  /** Undefined in a JSON array. */
  readonly line: number | undefined;
}

async function* rawItems(file: string, onBytes: (bytes: number) => void): AsyncGenerator<RawItem, void> {
  const compression: Compression = /\.gz$/i.test(file) ? 'gzip' : /\.zst$/i.test(file) ? 'zstd' : 'none';
  let split: Split | undefined;
  try {
    const chunks = readBytes(file, { compression, onRead: ({ length }) => onBytes(length) });
    for await (const chunk of withoutByteOrderMark(chunks)) {
      split ??= splitOf(file, chunk);
      yield* split?.(chunk) ?? [];
    }
    yield* split?.('end') ?? [];
  } catch (error) {
    throw isNodeError(error) && error.syscall !== undefined ? unreadable(file, error) : readingFailed(file, 1, error);
  }
}

async function* withoutByteOrderMark(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let first = true;
  for await (const chunk of chunks) {
    yield first && chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk;
    first = false;
  }
}

/** The items that end in a chunk, or at the end of the file. */
type Split = (chunk: Buffer | 'end') => RawItem[];

/** The first byte that is not white space decides between an array and lines; undefined while there is none. */
function splitOf(file: string, firstChunk: Buffer): Split | undefined {
  const start = firstChunk.toString('latin1').trimStart();
  if (start === '') return undefined;
  return start.startsWith('[') ? arraySplit(file) : lineSplit(file);
}

function arraySplit(file: string): Split {
  const splitter = new JsonArraySplitter(MAX_ITEM_BYTES);
  let items = 0;
  return (chunk) => {
    try {
      const found = chunk === 'end' ? splitter.end() : splitter.push(chunk);
      items += found.length;
      return found.map((bytes) => ({ bytes, line: undefined }));
    } catch (error) {
      if (error instanceof ArrayError) throw itemError(`${file}, after item ${items}`, error.message, error);
      throw error;
    }
  };
}

function lineSplit(file: string): Split {
  const splitter = new LineSplitter({ newline: 'lf', maxLineBytes: MAX_ITEM_BYTES });
  return (chunk) =>
    (chunk === 'end' ? splitter.end() : splitter.push(chunk)).flatMap(({ number, bytes, sizeBytes }) => {
      if (bytes === null) {
        throw itemError(`${file}:${number}`, `the line has ${sizeBytes} bytes; the limit is ${MAX_ITEM_BYTES}`);
      }
      return bytes.toString('latin1').trim() === '' ? [] : [{ bytes, line: number }];
    });
}
