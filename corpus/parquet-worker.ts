import { isUtf8 } from 'node:buffer';
import { workerData } from 'node:worker_threads';

import {
  type AsyncBuffer,
  asyncBufferFromFile,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  parquetSchema,
} from 'hyparquet';
import { compressors } from 'hyparquet-compressors';

import { isNodeError, TrawlError } from '../src/base/errors.ts';
import { answerCalls } from '../src/base/system/thread-calls.ts';
import { jsonText, toJsonValue } from './json-text.ts';
import { takeDecimals } from './parquet-decimals.ts';
import { parseJson } from './parse-json.ts';
import { columnOf, formatLocation, type PassageRow } from './passage.ts';
import { notFound, reasonOf } from './read-errors.ts';
import { type ColumnNames, columnsOfRow } from './row-columns.ts';

/** One row group as the footer describes it. */
export interface RowGroup {
  readonly rows: number;
  /** Uncompressed size of its columns. */
  readonly bytes: number;
}

/** A row as JSON text, or why it is bad. */
export type ParquetRow = string | { readonly reason: string };

/** What the thread reads. */
export interface ParquetSource {
  readonly path: string;
  /** Columns that must not be base64. */
  readonly columns: ColumnNames;
}

/** The row groups of the file, or the rows of one by its number. */
export type ParquetRequest = 'groups' | number;

/** Replacements for hyparquet's conversions, which change values they cannot represent. */
const PARSERS = {
  timestampFromMicroseconds: (micros: bigint) => dateText(micros, 1000n),
  timestampFromNanoseconds: (nanos: bigint) => dateText(nanos, 1_000_000n),
  /** Bytes that are not UTF-8 stay bytes: in id, title, text or contents the row is bad, other columns become base64. */
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

/** A date as ISO 8601 text, with all digits of its second. `perMs`: units in a millisecond. */
function dateText(units: bigint, perMs: bigint): Date | string {
  const rest = ((units % perMs) + perMs) % perMs;
  const date = new Date(Number((units - rest) / perMs));
  if (rest === 0n || Number.isNaN(date.getTime())) return date;
  return date.toISOString().replace('Z', `${String(rest).padStart(String(perMs).length - 1, '0')}Z`);
}

answerCalls(async () => {
  const { path, columns } = workerData as ParquetSource;
  const { file, metadata } = await openParquet(path);
  const groups = metadata.row_groups.map(
    (group): RowGroup => ({ rows: Number(group.num_rows), bytes: Number(group.total_byte_size) }),
  );
  checkRowCounts(path, metadata, groups);
  const decimals = takeDecimals(metadata);
  const names = parquetSchema(metadata).children.map(({ element }) => element.name);
  const starts = groups.map((_, at) => groups.slice(0, at).reduce((sum, { rows }) => sum + rows, 0));
  return async (request: ParquetRequest): Promise<readonly RowGroup[] | readonly ParquetRow[]> => {
    if (request === 'groups') return groups;
    const rowStart = starts[request]!;
    const rows = await readRows(path, file, metadata, rowStart, rowStart + groups[request]!.rows);
    return rows.map((values) => {
      const members = names.map((name, i): [string, unknown] => [name, decimals[i]?.(values[i]) ?? values[i]]);
      return toRow(Object.fromEntries(members), columns);
    });
  };
});

async function openParquet(path: string): Promise<{ file: AsyncBuffer; metadata: FileMetaData }> {
  try {
    const file = await asyncBufferFromFile(path);
    return { file, metadata: await parquetMetadataAsync(file) };
  } catch (error) {
    if (isNodeError(error) && error.syscall !== undefined) throw notFound(path, reasonOf(error), error);
    throw new TrawlError(
      'CORPUS_FORMAT_UNKNOWN',
      `${path} cannot be read as Parquet: ${messageOf(error)}. It has another format (set it with --format), or its ` +
        'download is incomplete: the index of a Parquet file is at its end.',
      { details: { path }, cause: error },
    );
  }
}

/** Without this check, rows hidden by a damaged footer would be missing silently. */
function checkRowCounts(path: string, metadata: FileMetaData, groups: readonly RowGroup[]): void {
  const total = groups.reduce((sum, { rows }) => sum + rows, 0);
  const areCounts = groups.every(({ rows }) => Number.isSafeInteger(rows) && rows >= 0);
  if (areCounts && total === Number(metadata.num_rows)) return;
  throw new TrawlError(
    'CORPUS_BAD_LINE',
    `${path}: the footer states ${metadata.num_rows} rows, but its row groups have ${total}: the file is damaged. ` +
      'Download it again.',
    { details: { path } },
  );
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
    if (rows.length !== rowEnd - rowStart) throw new Error(`found ${rows.length} rows`);
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

function toRow(row: PassageRow, given: ColumnNames): ParquetRow {
  for (const name of Object.values(columnsOfRow(row, given)) as (string | undefined)[]) {
    // Bytes would become base64, which must not be embedded.
    if (name !== undefined && columnOf(row, name) instanceof Uint8Array)
      return { reason: `"${name}" must be a string, found bytes that are not UTF-8 text` };
  }
  return jsonText(toJsonValue(row));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
