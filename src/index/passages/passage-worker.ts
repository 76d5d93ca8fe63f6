import { workerData } from 'node:worker_threads';
import { bug, type SerializedError, serializeError } from '../../base/errors.ts';
import { answerCalls } from '../../base/system/thread-calls.ts';
import { rowId } from './id-column.ts';
import { PassageFile } from './passage-file.ts';
import type { PassageReply, PassageRequest, PassageShard, RowContent } from './passage-protocol.ts';

const shards = (workerData as readonly PassageShard[]).map((shard) => ({
  ...shard,
  file: new PassageFile(shard.path),
}));

function contentOf(row: number, what: RowContent): string {
  let low = 0;
  let high = shards.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (shards[middle]!.firstRow <= row) low = middle;
    else high = middle - 1;
  }
  const shard = shards[low];
  const content = shard?.file[what](row - shard.firstRow);
  if (content === undefined) throw bug(`no passage for row ${row}`);
  // A passage without an id of its own (null) has its row as id.
  return content ?? rowId(row);
}

/** Reads in row order, which is file order, until the time limit. */
function documentsOf({ what, rows, budgetMs }: Extract<PassageRequest, { type: 'get' }>): PassageReply {
  const order = Uint32Array.from(rows.keys()).sort((a, b) => rows[a]! - rows[b]!);
  const documents = new Array<string | null>(rows.length).fill(null);
  const failures: { index: number; error: SerializedError }[] = [];
  const end = performance.now() + budgetMs;
  let previousIndex: number | undefined;
  for (const index of order) {
    if (previousIndex !== undefined && rows[previousIndex] === rows[index]) {
      documents[index] = documents[previousIndex]!;
      continue;
    }
    if (previousIndex !== undefined && performance.now() > end) break;
    try {
      documents[index] = contentOf(rows[index]!, what);
      previousIndex = index;
    } catch (error) {
      failures.push({ index, error: serializeError(error) });
    }
  }
  return { type: 'documents', documents, failures };
}

/** Row numbers in the whole index, ascending, at most `limit`. */
function rowsOf({ by, limit }: Extract<PassageRequest, { type: 'find' }>, key: string): number[] {
  const rows: number[] = [];
  for (const { firstRow, file } of shards) {
    for (const row of file.find(by, key, limit - rows.length)) rows.push(firstRow + row);
    if (rows.length === limit) break;
  }
  return rows;
}

answerCalls(
  async () => (request: PassageRequest) =>
    request.type === 'find'
      ? { type: 'found', rows: request.keys.map((key) => rowsOf(request, key)) }
      : documentsOf(request),
  () => {
    for (const { file } of shards) file.close();
  },
);
