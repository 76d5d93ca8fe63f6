import { parentPort, workerData } from 'node:worker_threads';
import { bug, serializeError } from '../errors.ts';
import { PassageFile } from './passage-file.ts';
import type { FromPassageWorker, PassageWorkerData, ToPassageWorker } from './passage-protocol.ts';

const port = parentPort!;
const shards = (workerData as PassageWorkerData).shards.map((shard) => ({
  ...shard,
  file: new PassageFile(shard.path),
}));

function post(message: FromPassageWorker): void {
  port.postMessage(message);
}

function documentOf(row: number): string {
  let low = 0;
  let high = shards.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (shards[middle]!.firstRow <= row) low = middle;
    else high = middle - 1;
  }
  const shard = shards[low];
  const document = shard?.file.document(row - shard.firstRow);
  if (document === undefined) throw bug(`no passage for row ${row}`);
  return document;
}

/** Rows of the whole index, ascending; no more than `limit`. */
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
    if (message.type === 'find') {
      post({ type: 'found', id: message.id, rows: message.keys.map((key) => rowsOf(message, key)) });
    } else {
      post({ type: 'documents', id: message.id, documents: Array.from(message.rows, documentOf) });
    }
  } catch (error) {
    post({ type: 'failed', id: message.id, error: serializeError(error) });
  }
});
post({ type: 'ready' });
