import { throwIfCancelled } from '../../base/abort.ts';
import { ContentSum } from '../published/content-sum.ts';
import { type Publication, type PublicationPlan, readProgress, writeProgress } from '../published/publication.ts';
import type { PublishedRow } from '../published/published-row.ts';
import type { PartStore } from '../published/stored-files.ts';
import type { LocalRows } from './local-rows.ts';

/** Rows that are read at a time. */
const READ_ROWS = 2_000;

/** Where rows are stored. */
export interface RowStore {
  readonly files: PartStore;
  /** The most bytes of a call, unless one row has more, and the most rows. */
  readonly callBytes: number;
  readonly callRows: number;
  /** Replaces rows with the same numbers. */
  write(rows: readonly PublishedRow[]): Promise<void>;
  /** The norm of a vector, rounded up; throws NOT_SUPPORTED for one that the store cannot score. */
  normOf(row: number, vector: Float32Array): number;
}

interface StoreRowsOptions {
  readonly plan: PublicationPlan;
  readonly dimension: number;
  readonly signal: AbortSignal;
  readonly onProgress: (doneRows: number) => void;
}

/**
 * Stores the rows of an index, from where an earlier run stopped, and records how far it is after each read. Rows that were stored after
 * the last record are stored again, which changes nothing.
 *
 * @returns facts about all rows, including the rows of earlier runs.
 */
export async function storeRows(
  store: RowStore,
  local: LocalRows,
  { plan, dimension, signal, onProgress }: StoreRowsOptions,
): Promise<Pick<Publication, 'largestNorm' | 'contentSum'>> {
  const progress = await readProgress(store.files);
  let largestNorm = progress?.largestNorm ?? 0;
  const sum = new ContentSum(progress?.contentSum);
  let nextRow = progress?.nextRow ?? 0;
  const record = () => writeProgress(store.files, { ...plan, nextRow, largestNorm, contentSum: sum.hex });
  // Before the first row, so that a store with rows always says of which index they are.
  if (progress === undefined) await record();
  onProgress(nextRow);
  while (nextRow < local.rows) {
    throwIfCancelled(signal);
    const end = local.endOf(nextRow, READ_ROWS);
    const rows = await local.range(nextRow, end, plan.keyColumns);
    for (const row of rows) sum.add(row);
    for (const { row, vector } of rows) largestNorm = Math.max(largestNorm, store.normOf(row, vector));
    for (const call of callsOf(rows, store, dimension)) {
      throwIfCancelled(signal);
      await store.write(call);
    }
    nextRow = end;
    await record();
    onProgress(nextRow);
  }
  return { largestNorm, contentSum: sum.hex };
}

/** Divides rows into calls by their bytes. */
function* callsOf(
  rows: readonly PublishedRow[],
  { callBytes, callRows }: RowStore,
  dimension: number,
): Generator<PublishedRow[]> {
  let call: PublishedRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    const own = dimension * 4 + Buffer.byteLength(row.document) + 256;
    if (call.length > 0 && (call.length === callRows || bytes + own > callBytes)) {
      yield call;
      call = [];
      bytes = 0;
    }
    call.push(row);
    bytes += own;
  }
  if (call.length > 0) yield call;
}
