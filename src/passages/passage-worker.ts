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

port.on('message', (message: ToPassageWorker) => {
  if (message.type === 'close') {
    for (const { file } of shards) file.close();
    port.close();
    return;
  }
  try {
    const documents = Array.from(message.rows, documentOf);
    post({ type: 'documents', id: message.id, documents });
  } catch (error) {
    post({ type: 'failed', id: message.id, error: serializeError(error) });
  }
});
post({ type: 'ready' });
