import { parentPort, workerData } from 'node:worker_threads';
import { serializeError, TrawlError } from '../../base/errors.ts';
import { RowBitmap } from '../row-bitmap.ts';
import { TopK } from '../top-k.ts';
import { SegmentReader } from '../vectors/vector-segments.ts';
import type { FromReferenceWorker, ReferenceWorkerData, ToReferenceWorker } from './reference-protocol.ts';
import { referenceSearch } from './reference-search.ts';

/** Rows are read in blocks of this size, so that memory does not grow with the index. */
const BLOCK_BYTES = 4 * 1024 * 1024;
/** Queries scored between two checks of the cancel flag. */
const QUERIES_PER_STEP = 64;

const { source, begin, end } = workerData as ReferenceWorkerData;
const port = parentPort!;
const readers = source.shards.map((shard) => ({ shard, reader: open(shard.segments) }));
const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (source.dimension * 4)));
const block = new Float32Array(rowsPerBlock * source.dimension);
// The structured clone to this thread drops the class.
const liveRows = source.liveRows === undefined ? undefined : new RowBitmap(source.rows, source.liveRows.bytes);

function open(segments: ConstructorParameters<typeof SegmentReader>[0]): SegmentReader {
  return new SegmentReader(segments, source.dimension);
}

function post(message: FromReferenceWorker, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer);
}

function search(request: Extract<ToReferenceWorker, { type: 'search' }>): void {
  const { id, queries, count, k, cancelled } = request;
  const filter = request.filter === undefined ? liveRows : requested(request.filter);
  const heaps = Array.from({ length: count }, () => new TopK(k));
  for (const { shard, reader } of readers) {
    const first = Math.max(begin, shard.firstRow);
    const last = Math.min(end, shard.firstRow + shard.rows);
    for (let row = first; row < last; row += rowsPerBlock) {
      const rowCount = Math.min(rowsPerBlock, last - row);
      reader.read(row - shard.firstRow, rowCount, block);
      for (let q = 0; q < count; q += QUERIES_PER_STEP) {
        if (Atomics.load(cancelled, 0) === 1) throw new TrawlError('CANCELLED', 'The search was cancelled.');
        const queryCount = Math.min(QUERIES_PER_STEP, count - q);
        referenceSearch(
          {
            rows: block,
            rowCount,
            dimension: source.dimension,
            metric: source.metric,
            queries: queries.subarray(q * source.dimension, (q + queryCount) * source.dimension),
            queryCount,
            firstRow: row,
            filter,
          },
          heaps.slice(q, q + queryCount),
        );
      }
    }
  }
  reply(id, k, heaps);
}

function requested(filter: Uint8Array): RowBitmap {
  const bitmap = new RowBitmap(source.rows, filter);
  return liveRows === undefined ? bitmap : bitmap.intersection(liveRows);
}

function reply(id: number, k: number, heaps: readonly TopK[]): void {
  const counts = new Uint32Array(heaps.length);
  // A worker has no more hits than rows.
  const stride = Math.min(k, end - begin);
  const rows = new Float64Array(heaps.length * stride).fill(-1);
  const scores = new Float64Array(heaps.length * stride);
  for (const [q, heap] of heaps.entries()) {
    const hits = heap.sorted();
    counts[q] = hits.rows.length;
    rows.set(hits.rows, q * stride);
    scores.set(hits.scores, q * stride);
  }
  post({ type: 'found', id, counts, rows, scores }, [counts.buffer, rows.buffer, scores.buffer]);
}

port.on('message', (message: ToReferenceWorker) => {
  if (message.type === 'close') {
    for (const { reader } of readers) reader.close();
    port.close();
    return;
  }
  try {
    search(message);
  } catch (error) {
    post({ type: 'failed', id: message.id, error: serializeError(error) });
  }
});
post({ type: 'ready' });
