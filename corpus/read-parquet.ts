import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

import { bug, deserializeError, isNodeError, TrawlError } from '../src/errors.ts';
import { checkRow, type ReaderContext, type ReadRow } from './check-row.ts';
import type { ParquetReply, ParquetRow, RowGroup } from './parquet-worker.ts';
import { parseJson } from './parse-json.ts';
import { formatLocation } from './passage.ts';
import { readBytes } from './read-bytes.ts';

export interface ReadParquetOptions {
  /** For the first answer, and added for each MB of a row group. Default 60 s and 1 s: far above what a sound file takes. */
  timeLimitMs?: number;
  timePerMbMs?: number;
}

/** V8's memory for one row group, in MB. */
const HEAP_MB = 4096;

/**
 * Reads Parquet, a batch for each row group: memory is bounded by the largest row group of the file. The library
 * believes what a damaged page says, and may count to 2^31 or fill the memory for it; so it has a thread of its own
 * with a limit of both.
 */
export async function* readParquet(
  context: ReaderContext,
  { timeLimitMs = 60_000, timePerMbMs = 1000 }: ReadParquetOptions = {},
): AsyncGenerator<readonly ReadRow[], void> {
  const { path, range } = context;
  const thread = new ParquetThread(path);
  try {
    const groups = await thread.groups(timeLimitMs);
    let firstLine = 1;
    for (const [position, group] of groups.entries()) {
      if (group.rows === 0) continue;
      const [from, to] = [range?.first ?? 1, range?.end ?? Number.POSITIVE_INFINITY];
      if (firstLine + group.rows <= from || firstLine >= to) {
        firstLine += group.rows;
        continue;
      }
      const limitMs = timeLimitMs + (timePerMbMs * Math.max(0, group.bytes)) / 1e6;
      const rows = await thread.rows(position, firstLine, limitMs);
      const first = firstLine;
      const begin = Math.max(0, from - first);
      yield rows.slice(begin, to - first).map((row, offset) => toReadRow(first + begin + offset, row));
      firstLine += group.rows;
    }
  } finally {
    await thread.close();
  }
  if (range !== undefined) return;
  if (range !== undefined) return;
  // Parquet is read here and there in the file; counting and hashing takes a pass of its own.
  for await (const _ of readBytes(path, { compression: 'none', onRead: context.onRead }));
}

/** Rows of the file, as its end says. */
export async function parquetRows(path: string, limitMs = 60_000): Promise<number> {
  const thread = new ParquetThread(path);
  try {
    return (await thread.groups(limitMs)).reduce((sum, { rows }) => sum + rows, 0);
  } finally {
    await thread.close();
  }
}

function toReadRow(line: number, row: ParquetRow): ReadRow {
  if (typeof row !== 'string') return { ok: false, line, reason: row.reason };
  const parsed = parseJson(row);
  return parsed.ok ? checkRow(line, parsed.value, row) : { ok: false, line, reason: parsed.reason };
}

class ParquetThread {
  readonly #path: string;
  readonly #worker: Worker;

  constructor(path: string) {
    this.#path = path;
    this.#worker = new Worker(new URL('./parquet-worker.js', import.meta.url), {
      name: 'trawl-parquet',
      workerData: path,
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    // What happens while nobody waits is found by the next question.
    this.#worker.on('error', () => undefined);
  }

  async groups(limitMs: number): Promise<readonly RowGroup[]> {
    const reply = await this.#reply(1, limitMs);
    if (reply.kind === 'groups') return reply.groups;
    throw bug(`The Parquet thread answered ${reply.kind} for groups`);
  }

  async rows(group: number, firstLine: number, limitMs: number): Promise<readonly ParquetRow[]> {
    const answered = this.#reply(firstLine, limitMs);
    this.#worker.postMessage(group);
    const reply = await answered;
    if (reply.kind === 'rows') return reply.rows;
    throw bug(`The Parquet thread answered ${reply.kind} for rows`);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  async #reply(line: number, limitMs: number): Promise<Exclude<ParquetReply, { kind: 'error' }>> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), limitMs);
    let reply: ParquetReply;
    try {
      [reply] = (await once(this.#worker, 'message', { signal: stop.signal })) as [ParquetReply];
    } catch (error) {
      throw this.#damaged(line, stop.signal.aborted ? `no end of it in ${Math.ceil(limitMs / 1000)} s` : error);
    } finally {
      clearTimeout(timer);
    }
    if (reply.kind === 'error') throw deserializeError(reply.error);
    return reply;
  }

  #damaged(line: number, cause: unknown): TrawlError {
    const outOfMemory = isNodeError(cause) && cause.code === 'ERR_WORKER_OUT_OF_MEMORY';
    const reason =
      typeof cause === 'string' ? cause : outOfMemory ? `more than ${HEAP_MB} MB of memory for it` : String(cause);
    return new TrawlError(
      'CORPUS_BAD_LINE',
      `${formatLocation({ file: this.#path, line })}: the row group that begins here cannot be read: ${reason}. The ` +
        'file is damaged, or its row groups are too large; compare its checksum, or write it again with smaller ones.',
      { details: { path: this.#path, line }, cause },
    );
  }
}
