import { workerData } from 'node:worker_threads';
import { TrawlError } from '../../base/errors.ts';
import { answerCalls } from '../../base/system/thread-calls.ts';
import { RowBitmap } from '../row-bitmap.ts';
import { hitArrays, TopK } from '../top-k.ts';
import type { ShardSource } from '../vectors/vector-index.ts';
import { SegmentReader } from '../vectors/vector-segments.ts';
import type { PartRequest, ReferenceWorkerData } from './reference-index.ts';
import { referenceSearch } from './reference-search.ts';

/** Rows are read in blocks of this size, so that memory does not grow with the index. */
const BLOCK_BYTES = 4 * 1024 * 1024;
/** Queries scored between two checks of the cancel flag. */
const QUERIES_PER_STEP = 64;

const { source, begin, end } = workerData as ReferenceWorkerData;
const rowsPerBlock = Math.max(1, Math.floor(BLOCK_BYTES / (source.dimension * 4)));
const block = new Float32Array(rowsPerBlock * source.dimension);
// The structured clone to this thread drops the class.
const liveRows = source.liveRows === undefined ? undefined : new RowBitmap(source.rows, source.liveRows.bytes);
const readers: { readonly shard: ShardSource; readonly reader: SegmentReader }[] = [];

answerCalls(
  async () => {
    for (const shard of source.shards) {
      readers.push({ shard, reader: new SegmentReader(shard.segments, source.dimension) });
    }
    return (request: PartRequest, transfer) => {
      const part = search(request);
      transfer.push(part.counts.buffer, part.rows.buffer, part.scores.buffer);
      return part;
    };
  },
  () => {
    for (const { reader } of readers) reader.close();
  },
);

function search(request: PartRequest) {
  const { queries, count, k, cancelled } = request;
  const filter = request.filter === undefined ? liveRows : amongLive(request.filter);
  const best = Array.from({ length: count }, () => new TopK(k));
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
          best.slice(q, q + queryCount),
        );
      }
    }
  }
  // A worker has no more hits than rows.
  return hitArrays(best, Math.min(k, end - begin));
}

function amongLive(filter: Uint8Array): RowBitmap {
  const bitmap = new RowBitmap(source.rows, filter);
  return liveRows === undefined ? bitmap : bitmap.intersection(liveRows);
}
