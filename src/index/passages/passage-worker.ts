import { parentPort, workerData } from 'node:worker_threads';
import { bug, type SerializedError, serializeError } from '../../base/errors.ts';
import { rowId } from './id-column.ts';
import { PassageFile } from './passage-file.ts';
import type { FromPassageWorker, PassageWorkerData, RowContent, ToPassageWorker } from './passage-protocol.ts';

const port = parentPort!;
const shards = (workerData as PassageWorkerData).shards.map((shard) => ({
  ...shard,
  file: new PassageFile(shard.path),
}));

function post(message: FromPassageWorker): void {
  port.postMessage(message);
}

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
function documentsOf({ what, rows, budgetMs }: Extract<ToPassageWorker, { type: 'get' }>): FromPassageWorker {
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
function rowsOf({ by, limit }: Extract<ToPassageWorker, { type: 'find' }>, key: string): number[] {
  const rows: number[] = [];
  for (const { firstRow, file } of shards) {
    for (const row of file.find(by, key, limit - rows.length)) rows.push(firstRow + row);
    if (rows.length === limit) break;
  }
  return rows;
}

port.on('message', (message: ToPassageWorker) => {
  if (message.type === 'close') {
    for (const { file } of shards) file.close();
    port.close();
    return;
  }
  try {
    if (message.type === 'find') post({ type: 'found', rows: message.keys.map((key) => rowsOf(message, key)) });
    else post(documentsOf(message));
  } catch (error) {
    post({ type: 'failed', error: serializeError(error) });
  }
});
post({ type: 'ready' });
