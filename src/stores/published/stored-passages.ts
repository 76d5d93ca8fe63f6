import { TrawlError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import { rowId } from '../../index/passages/id-column.ts';
import { integerKey } from '../../index/passages/passage-file.ts';
import type { PassageStore } from '../../index/passages/passage-store.ts';
import type { Lookup } from '../../index/passages/schema.ts';
import { lookupHash } from './published-row.ts';

/** Rows of a read, if their documents are short. */
const ROWS_A_READ = 1_024;
/** Bytes of documents of a read at most; Milvus sends up to 64 MiB. */
const BYTES_A_READ = 2 ** 25;
/** Bytes of a piece of a document. */
const PIECE_BYTES = 65_535;
/** Keys of a look-up that are sent at once. */
const KEYS_A_READ = 512;
/** Reads at once of one call. */
const READS_AT_ONCE = 4;

/** Reads of a store. Each fails rather than leave out a row. */
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

interface StoredPassagesFacts {
  readonly rows: number;
  /** How many pieces of 65,535 bytes the longest document has. */
  readonly pieces: number;
  /** The look-ups that the passages were published with. */
  readonly lookups: readonly Lookup[];
  /** Whether the row was deleted before the publication; such rows are not in the store. */
  isDeleted(row: number): boolean;
}

/** The passages of a published index. */
export class StoredPassages implements PassageStore {
  readonly rows: number;
  readonly failure = undefined;
  readonly #reader: PassageReader;
  readonly #passages: StoredPassagesFacts;
  readonly #end: () => Promise<void>;
  readonly #calls = new RunningCalls('The passages are closed.');

  /** @param end closes what the reader needs. */
  constructor(reader: PassageReader, passages: StoredPassagesFacts, end: () => Promise<void> = async () => undefined) {
    this.rows = passages.rows;
    this.#reader = reader;
    this.#passages = passages;
    this.#end = end;
  }

  getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    const { pieces } = this.#passages;
    const atOnce = Math.max(1, Math.min(ROWS_A_READ, Math.floor(BYTES_A_READ / (pieces * PIECE_BYTES))));
    return this.#read(rows, atOnce, (part, stop) => this.#reader.documents(part, stop), signal);
  }

  idsOf(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    const idsOf = async (part: readonly number[], stop: AbortSignal): Promise<string[]> => {
      const ids = await this.#reader.ids(part, stop);
      return ids.map((id, i) => id ?? rowId(part[i]!));
    };
    return this.#read(rows, ROWS_A_READ, idsOf, signal);
  }

  find(by: Lookup, keys: readonly string[], limit: number, signal?: AbortSignal): Promise<number[][]> {
    return this.#calls.run(async () => {
      if (!this.#passages.lookups.includes(by)) {
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
        const found = await this.#reader.lookUp(by, distinct.slice(at, at + KEYS_A_READ), signal);
        for (const { row, hash } of found) rowsOf.set(hash, [...(rowsOf.get(hash) ?? []), row]);
      }
      return hashes.map((both) => {
        const rows = new Set(both.flatMap((hash) => rowsOf.get(hash) ?? []));
        return [...rows].sort((a, b) => a - b).slice(0, limit);
      });
    });
  }

  close(): Promise<void> {
    return this.#calls.close(this.#end);
  }

  #read(
    rows: ArrayLike<number>,
    atOnce: number,
    contentsOf: (part: readonly number[], stop: AbortSignal) => Promise<readonly string[]>,
    signal: AbortSignal | undefined,
  ): Promise<string[]> {
    return this.#calls.run(async () => {
      const distinct = [...new Set(Array.from(rows))];
      for (const row of distinct) this.#checkRow(row);
      const contents = new Map<number, string>();
      const parts: number[][] = [];
      for (let at = 0; at < distinct.length; at += atOnce) parts.push(distinct.slice(at, at + atOnce));
      const read = async (part: readonly number[], stop: AbortSignal): Promise<void> => {
        const found = await contentsOf(part, stop);
        for (const [i, row] of part.entries()) contents.set(row, found[i]!);
      };
      await inParallel(parts, READS_AT_ONCE, read, signal);
      return Array.from(rows, (row) => contents.get(row)!);
    });
  }

  #checkRow(row: number): void {
    if (!Number.isInteger(row) || row < 0 || row >= this.rows) {
      throw new RangeError(`Row ${row} is not in [0, ${this.rows}).`);
    }
    if (!this.#passages.isDeleted(row)) return;
    throw new TrawlError('NOT_FOUND', `The passage of row ${row} was deleted before the index was published.`);
  }
}
