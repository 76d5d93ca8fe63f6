import { isUtf8 } from 'node:buffer';

import {
  type AsyncBuffer,
  asyncBufferFromFile,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

import { isNodeError, TrawlError } from '../src/errors.ts';
import { checkRow, type ReaderContext, type ReadRow } from './check-row.ts';
import { type JsonValue, jsonText, toJsonValue } from './json-text.ts';
import { notFound, reasonOf } from './list-corpus-files.ts';
import { parseJson } from './parse-json.ts';
import { formatLocation } from './passage.ts';
import { readBytes } from './read-bytes.ts';

/** Replacements for the library's own conversions, which alter what they cannot represent. */
const PARSERS = {
  /** Bytes that are not UTF-8 stay bytes: a bad row if they are its text, base64 in any other column. */
  stringFromBytes: (bytes: Uint8Array | undefined) =>
    bytes !== undefined && isUtf8(bytes) ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString() : bytes,
  /** Integers beyond 2^53 stay exact. */
  jsonFromBytes: (bytes: Uint8Array | undefined) => {
    if (bytes === undefined) return undefined;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
    const parsed = parseJson(text);
    return parsed.ok ? parsed.value : text;
  },
};

/** Reads Parquet, a batch for each row group: memory is bounded by the largest row group of the file. */
export async function* readParquet(context: ReaderContext): AsyncGenerator<readonly ReadRow[], void> {
  const { path, range } = context;
  const { file, metadata } = await openParquet(path);
  const names = parquetSchema(metadata).children.map(({ element }) => element.name);
  let firstRow = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = firstRow + Number(group.num_rows);
    const [from, to] = [Math.max(firstRow, (range?.first ?? 1) - 1), Math.min(rowEnd, (range?.end ?? Infinity) - 1)];
    if (from < to) {
      const rows = await readRows(path, file, metadata, from, to);
      yield rows.map((values, offset) => toRow(from + offset + 1, names, values));
    }
    firstRow = rowEnd;
  }
  if (range !== undefined) return;
  // Parquet is read here and there in the file; counting and hashing takes a pass of its own.
  for await (const _ of readBytes(path, { gzip: false, onRead: context.onRead }));
}

/** Rows of the file, as its end says. */
export async function parquetRows(path: string): Promise<number> {
  return Number((await openParquet(path)).metadata.num_rows);
}

async function openParquet(path: string): Promise<{ file: AsyncBuffer; metadata: FileMetaData }> {
  try {
    const file = await asyncBufferFromFile(path);
    return { file, metadata: await parquetMetadataAsync(file) };
  } catch (error) {
    if (isNodeError(error) && error.syscall !== undefined) throw notFound(path, reasonOf(error), error);
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} cannot be read as Parquet: ${messageOf(error)}. It is of another kind (say it with --format), or its ` +
        'download was cut off: the description of its columns stands at its end.',
      { details: { path }, cause: error },
    );
  }
}

async function readRows(
  path: string,
  file: AsyncBuffer,
  metadata: FileMetaData,
  rowStart: number,
  rowEnd: number,
): Promise<readonly unknown[][]> {
  let rows: readonly unknown[][] = [];
  try {
    await parquetRead({
      file,
      metadata,
      compressors,
      rowStart,
      rowEnd,
      parsers: PARSERS,
      onComplete: (complete) => {
        rows = complete;
      },
    });
  } catch (error) {
    throw new TrawlError(
      'CORPUS_BAD_LINE',
      `${formatLocation({ file: path, line: rowStart + 1 })}: the row group of rows ${rowStart + 1} to ${rowEnd} cannot ` +
        `be read: ${messageOf(error)}. The file is damaged, or uses a feature of Parquet that is not supported.`,
      { details: { path, line: rowStart + 1 }, cause: error },
    );
  }
  return rows;
}

function toRow(line: number, names: readonly string[], values: readonly unknown[]): ReadRow {
  for (const name of ['contents', 'text', 'title', 'id']) {
    // Base64 of something that is not text must not pass for text.
    const bytes = values[names.indexOf(name)];
    if (bytes instanceof Uint8Array)
      return { ok: false, line, reason: `"${name}" holds bytes that are not UTF-8 text` };
  }
  const row: Readonly<Record<string, JsonValue>> = Object.fromEntries(
    names.map((name, position) => [name, toJsonValue(values[position])]),
  );
  return checkRow(line, row, jsonText(row));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
