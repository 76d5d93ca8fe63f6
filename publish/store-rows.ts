import { throwIfCancelled } from '../src/abort.ts';
import type { Metric } from '../src/metric.ts';
import { ContentSum } from '../src/milvus/content-sum.ts';
import type { MilvusClient } from '../src/milvus/milvus-client.ts';
import { type Publication, type PublicationPlan, readProgress, writeProgress } from '../src/milvus/publication.ts';
import { entityOf, type PublishedRow } from '../src/milvus/published-rows.ts';
import { checkedNorm } from './checked-norm.ts';
import type { LocalRows } from './local-rows.ts';

/** Bytes of a call, less than Kafka's default limit of a message (1 MB). */
const CALL_BYTES = 700_000;
const CALL_ROWS = 500;
/** Rows that are read at a time. */
const READ_ROWS = 2_000;

export interface StoreRowsOptions {
  readonly collection: string;
  readonly plan: PublicationPlan;
  readonly metric: Metric;
  readonly dimension: number;
  readonly signal: AbortSignal;
  readonly onProgress: (doneRows: number) => void;
}

/**
 * Stores the rows of an index, from where an earlier run stopped, and records how far it is after each read. Rows that were stored after
 * the last record are stored again, which changes nothing.
 *
 * @returns facts about all rows, those of earlier runs included.
 */
export async function storeRows(
  client: MilvusClient,
  local: LocalRows,
  { collection, plan, metric, dimension, signal, onProgress }: StoreRowsOptions,
): Promise<Pick<Publication, 'largestNorm' | 'contentSum'>> {
  const progress = await readProgress(client, collection);
  let largestNorm = progress?.largestNorm ?? 0;
  const sum = new ContentSum(progress?.contentSum);
  let nextRow = progress?.nextRow ?? 0;
  onProgress(nextRow);
  while (nextRow < local.rows) {
    throwIfCancelled(signal);
    const end = local.endOf(nextRow, READ_ROWS);
    const rows = await local.range(nextRow, end, plan.keyColumns);
    for (const row of rows) sum.add(row);
    for (const { row, vector } of rows) largestNorm = Math.max(largestNorm, checkedNorm(row, vector, metric));
    for (const call of callsOf(rows, dimension)) {
      throwIfCancelled(signal);
      await client.upsert(
        collection,
        call.map((row) => entityOf(row, plan)),
      );
    }
    nextRow = end;
    await writeProgress(client, collection, { ...plan, nextRow, largestNorm, contentSum: sum.hex });
    onProgress(nextRow);
  }
  return { largestNorm, contentSum: sum.hex };
}

/** Divides rows into calls by their bytes. */
function* callsOf(rows: readonly PublishedRow[], dimension: number): Generator<PublishedRow[]> {
  let call: PublishedRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    const own = dimension * 4 + Buffer.byteLength(row.document) + 256;
    if (call.length > 0 && (call.length === CALL_ROWS || bytes + own > CALL_BYTES)) {
      yield call;
      call = [];
      bytes = 0;
    }
    call.push(row);
    bytes += own;
  }
  if (call.length > 0) yield call;
}
