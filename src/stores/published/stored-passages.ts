import { TrawlError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import { rowId } from '../../index/passages/document-fields.ts';
import { integerKey } from '../../index/passages/passage-file.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import type { Lookup } from '../../index/passages/schema.ts';
import type { Publication } from './publication.ts';
import { lookupHash, PIECE_BYTES } from './published-row.ts';

/** Rows of a read, if their documents are short. */
const ROWS_A_READ = 1_024;
/** Bytes of documents of a read at most; Milvus sends up to 64 MiB. */
const BYTES_A_READ = 2 ** 25;
const KEYS_A_READ = 512;
const READS_AT_ONCE = 4;

/** How a store is read. Each function fails if a row is missing. */
export interface PassageReader {
  /** The documents of distinct rows, in their order. */
  documents(rows: readonly number[], signal?: AbortSignal): Promise<readonly string[]>;
  /** The ids of distinct rows, in their order; null for a passage without one. */
  ids(rows: readonly number[], signal?: AbortSignal): Promise<readonly (string | null)[]>;
  /** All rows with one of the hashes (`lookupHash`), in no order. */
  lookUp(
    by: Lookup,
    hashes: readonly string[],
    signal?: AbortSignal,
  ): Promise<readonly { readonly row: number; readonly hash: string }[]>;
}

interface StoredPassagesFacts extends Pick<Publication, 'pieces' | 'lookups'> {
  readonly rows: number;
  /** The rows that are in the store; undefined for all. */
  readonly liveRows: RowBitmap | undefined;
}

/** The passages of a published index. @param end closes what the reader needs. */
export function storedPassages(
  reader: PassageReader,
  { rows, pieces, lookups, liveRows }: StoredPassagesFacts,
  end: () => Promise<void>,
): PassageStore {
  const calls = new RunningCalls('The passages are closed.');
  const documentsAtOnce = Math.max(1, Math.min(ROWS_A_READ, Math.floor(BYTES_A_READ / (pieces * PIECE_BYTES))));
  const checkRow = (row: number): void => {
    if (!Number.isInteger(row) || row < 0 || row >= rows) throw new RangeError(`Row ${row} is not in [0, ${rows}).`);
    if (liveRows?.has(row) === false)
      throw new TrawlError('NOT_FOUND', `The passage of row ${row} was deleted before the index was published.`);
  };
  const read = async (
    wanted: ArrayLike<number>,
    atOnce: number,
    readPart: (part: readonly number[], stop: AbortSignal) => Promise<readonly string[]>,
    signal: AbortSignal | undefined,
  ): Promise<string[]> => {
    const distinct = [...new Set(Array.from(wanted))];
    distinct.forEach(checkRow);
    const contents = new Map<number, string>();
    const parts: number[][] = [];
    for (let at = 0; at < distinct.length; at += atOnce) parts.push(distinct.slice(at, at + atOnce));
    const readInto = async (part: readonly number[], stop: AbortSignal): Promise<void> => {
      const found = await readPart(part, stop);
      for (const [i, row] of part.entries()) contents.set(row, found[i]!);
    };
    await inParallel(parts, READS_AT_ONCE, readInto, signal);
    return Array.from(wanted, (row) => contents.get(row)!);
  };
  const readDocuments = (part: readonly number[], stop: AbortSignal) => reader.documents(part, stop);
  const readIds = async (part: readonly number[], stop: AbortSignal): Promise<string[]> => {
    const found = await reader.ids(part, stop);
    return found.map((id, i) => id ?? rowId(part[i]!));
  };
  const find: PassageStore['find'] = async (by, keys, limit, signal) => {
    if (!lookups.includes(by)) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `This index cannot look up passages by ${by}. Build it again with this version, and publish it again.`,
        { details: { by } },
      );
    }
    // An id that looks like an integer may be stored as one.
    const hashes = keys.map((key) => [lookupHash(by, key), lookupHash(by, integerKey(by, key))]);
    const distinct = [...new Set(hashes.flat())].filter((hash) => hash !== '0');
    const rowsOf = new Map<string, number[]>();
    for (let at = 0; at < distinct.length; at += KEYS_A_READ) {
      const found = await reader.lookUp(by, distinct.slice(at, at + KEYS_A_READ), signal);
      for (const { row, hash } of found) {
        const others = rowsOf.get(hash);
        if (others === undefined) rowsOf.set(hash, [row]);
        else others.push(row);
      }
    }
    return hashes.map((both) => {
      const ofKey = new Set(both.flatMap((hash) => rowsOf.get(hash) ?? []));
      return [...ofKey].sort((a, b) => a - b).slice(0, limit);
    });
  };
  return {
    rows,
    failure: undefined,
    getMany: (wanted, signal) => calls.run(() => read(wanted, documentsAtOnce, readDocuments, signal)),
    idsOf: (wanted, signal) => calls.run(() => read(wanted, ROWS_A_READ, readIds, signal)),
    find: (...asked) => calls.run(() => find(...asked)),
    close: () => calls.close(end),
  };
}
