import { workerData } from 'node:worker_threads';
import { bug, type SerializedError, serializeError } from '../../base/errors.ts';
import { answerCalls } from '../../base/system/thread-calls.ts';
import { rowId } from './document-fields.ts';
import { PassageFile } from './passage-file.ts';
import type { PassageReply, PassageRequest, PassageShard, ReadKind } from './passage-protocol.ts';

const shards = (workerData as readonly PassageShard[]).map((shard) => ({
  ...shard,
  file: new PassageFile(shard.path, { isServed: true }),
}));

/** The files that the current call has read. */
const read = new Set<PassageFile>();

/** @throws TrawlError FILE_CHANGED for every item of a call, also for those that were read without an error. */
function fromUnchangedFiles<Result>(work: () => Result): Result {
  read.clear();
  try {
    return work();
  } finally {
    for (const file of read) file.requireUnchanged();
  }
}

function contentOfRow(row: number, content: 'document' | 'id'): string {
  let low = 0;
  let high = shards.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (shards[middle]!.firstRow <= row) low = middle;
    else high = middle - 1;
  }
  const shard = shards[low];
  if (shard !== undefined) read.add(shard.file);
  const found = shard?.file[content](row - shard.firstRow);
  if (found === undefined) throw bug(`no passage for row ${row}`);
  // Null: the passage has no id.
  return found ?? rowId(row);
}

function rowsWithKey({ by, limit }: Exclude<ReadKind, string>, key: string): number[] {
  const rows: number[] = [];
  for (const { firstRow, file } of shards) {
    read.add(file);
    for (const row of file.find(by, key, limit - rows.length)) rows.push(firstRow + row);
    if (rows.length === limit) break;
  }
  return rows;
}

/** Reads rows in their order, which is the order of the file, until the time limit. */
function readRows(rows: readonly number[], content: 'document' | 'id', budgetMs: number): PassageReply {
  const order = Uint32Array.from(rows.keys()).sort((a, b) => rows[a]! - rows[b]!);
  const values = new Array<string | null>(rows.length).fill(null);
  const failures: { index: number; error: SerializedError }[] = [];
  const end = performance.now() + budgetMs;
  let previous: number | undefined;
  for (const index of order) {
    if (previous !== undefined && rows[previous] === rows[index]) {
      values[index] = values[previous]!;
      continue;
    }
    if (previous !== undefined && performance.now() > end) break;
    try {
      values[index] = contentOfRow(rows[index]!, content);
      previous = index;
    } catch (error) {
      failures.push({ index, error: serializeError(error) });
    }
  }
  return { values, failures };
}

answerCalls(
  async () =>
    ({ kind, items, budgetMs }: PassageRequest): PassageReply =>
      fromUnchangedFiles(() =>
        typeof kind === 'string'
          ? readRows(items as readonly number[], kind, budgetMs)
          : { values: items.map((key) => rowsWithKey(kind, key as string)), failures: [] },
      ),
  () => {
    for (const { file } of shards) file.close();
  },
);
