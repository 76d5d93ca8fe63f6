import { cancelled, untilAborted } from '../src/base/abort.ts';
import { isNodeError, TrawlError } from '../src/base/errors.ts';
import { CallThread } from '../src/base/system/thread-calls.ts';
import { checkRow, type ReadRow } from './check-row.ts';
import type { CorpusFormat, LineRange, ReaderContext } from './corpus-format.ts';
import type { ParquetRequest, ParquetRow, ParquetSource, RowGroup } from './parquet-worker.ts';
import { parseJson } from './parse-json.ts';
import { formatLocation } from './passage.ts';
import { readBytes } from './read-bytes.ts';
import type { ColumnNames } from './row-columns.ts';

interface ReadParquetOptions {
  /** Time limit in ms for reading the footer. For a row group, `timePerMbMs` per MB is added. Default: 60,000. */
  timeLimitMs?: number;
  /** Default: 1,000. */
  timePerMbMs?: number;
}

/** Time limit for reading the footer. */
const TIME_LIMIT_MS = 60_000;
/** V8 heap limit of the reading thread, in MB. */
const HEAP_MB = 4096;

/** Parquet with any codec but LZO. */
export const parquet: CorpusFormat = {
  name: 'parquet',
  extensions: ['.parquet'],
  content: 'Parquet with any codec but LZO',
  newline: null,
  rows: (context) => readParquet(context),
  countRows: parquetRows,
};

/** Reads the passages of a Parquet file, a batch per row group, as `readParquetRows`. @internal Exported for tests. */
export async function* readParquet(
  context: Pick<ReaderContext, 'path' | 'range' | 'onRead'> & Partial<Pick<ReaderContext, 'columns'>>,
  options: ReadParquetOptions = {},
): AsyncGenerator<readonly ReadRow[], void> {
  const { path, range, onRead, columns = {} } = context;
  for await (const rows of readParquetRows(path, { ...options, range, columns })) {
    yield rows.map(({ line, row }) => toReadRow(line, row, columns));
  }
  if (range !== undefined) return;
  // Parquet is not read in order, so counting and hashing need another pass.
  for await (const _ of readBytes(path, { compression: 'none', onRead, isBinary: true }));
}

/**
 * Reads the rows of a Parquet file as JSON text, a batch per row group, in memory bounded by the largest row group. A damaged page can
 * make hyparquet loop for hours or fill the memory, so it runs in its own thread with limits for time and memory.
 */
export async function* readParquetRows(
  path: string,
  {
    timeLimitMs = TIME_LIMIT_MS,
    timePerMbMs = 1000,
    range,
    columns = {},
  }: ReadParquetOptions & { readonly range?: Pick<LineRange, 'first' | 'end'>; readonly columns?: ColumnNames } = {},
): AsyncGenerator<readonly { readonly line: number; readonly row: ParquetRow }[], void> {
  const [from, to] = [range?.first ?? 1, range?.end ?? Number.POSITIVE_INFINITY];
  const thread = parquetThread(path, columns);
  try {
    let line = 1;
    for (const [number, group] of (await thread.groups(timeLimitMs)).entries()) {
      const first = line;
      line += group.rows;
      if (group.rows === 0 || line <= from || first >= to) continue;
      const limitMs = timeLimitMs + (timePerMbMs * Math.max(0, group.bytes)) / 1e6;
      const rows = await thread.rows(number, first, limitMs);
      const begin = Math.max(0, from - first);
      yield rows.slice(begin, to - first).map((row, offset) => ({ line: first + begin + offset, row }));
    }
  } finally {
    await thread.close();
  }
}

/** Number of rows according to the footer. */
async function parquetRows(path: string): Promise<number> {
  const thread = parquetThread(path);
  try {
    return (await thread.groups(TIME_LIMIT_MS)).reduce((sum, { rows }) => sum + rows, 0);
  } finally {
    await thread.close();
  }
}

function toReadRow(line: number, row: ParquetRow, columns: ColumnNames): ReadRow {
  if (typeof row !== 'string') return { ok: false, line, reason: row.reason };
  const parsed = parseJson(row);
  return parsed.ok ? checkRow(line, parsed.value, row, columns) : { ok: false, line, reason: parsed.reason };
}

/** Starts the thread that reads a file. Its methods throw CORPUS_BAD_LINE, with the line, if it takes longer than the limit or fails. */
function parquetThread(path: string, columns: ColumnNames = {}) {
  const thread = new CallThread<ParquetRequest, readonly RowGroup[] | readonly ParquetRow[]>(
    new URL('./parquet-worker.js', import.meta.url),
    {
      name: 'trawl-parquet',
      workerData: { path, columns } satisfies ParquetSource,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    },
  );
  const ask = async <A extends readonly RowGroup[] | readonly ParquetRow[]>(
    request: ParquetRequest,
    line: number,
    limitMs: number,
  ): Promise<A> => {
    const limit = AbortSignal.timeout(Math.min(Math.ceil(limitMs), 2 ** 31 - 1));
    try {
      const late = (): string => `not finished within ${Math.ceil(limitMs / 1000)} s`;
      return await untilAborted(thread.ask<A>(request), limit, late);
    } catch (error) {
      throw error instanceof TrawlError ? error : damaged(path, line, error);
    }
  };
  return {
    groups: (limitMs: number): Promise<readonly RowGroup[]> => ask('groups', 1, limitMs),
    rows: (group: number, firstLine: number, limitMs: number): Promise<readonly ParquetRow[]> =>
      ask(group, firstLine, limitMs),
    close: () => thread.terminate(cancelled()),
  };
}

function damaged(path: string, line: number, cause: unknown): TrawlError {
  const outOfMemory = isNodeError(cause) && cause.code === 'ERR_WORKER_OUT_OF_MEMORY';
  const reason =
    typeof cause === 'string' ? cause : outOfMemory ? `it needs more than ${HEAP_MB} MB of memory` : String(cause);
  return new TrawlError(
    'CORPUS_BAD_LINE',
    `${formatLocation({ file: path, line })}: the row group at this row cannot be read: ${reason}. The file is damaged, or ` +
      'its row groups are too large. Compare its checksum, or rewrite it with smaller row groups.',
    { details: { path, line }, cause },
  );
}
