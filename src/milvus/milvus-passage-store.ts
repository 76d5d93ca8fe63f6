import { TrawlError } from '../errors.ts';
import { rowId } from '../passages/id-column.ts';
import { integerKey } from '../passages/passage-file.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import type { Lookup } from '../passages/schema.ts';
import { RunningCalls } from '../running-calls.ts';
import { readRows } from './milvus-candidates.ts';
import { type Entity, MAX_TEXT_BYTES, type MilvusClient } from './milvus-client.ts';
import { documentOf, ID_FIELDS, idOf, lookupField, lookupHash, pieceFields, ROW_FIELD } from './published-rows.ts';

/** Rows of a read, if their documents are short. */
const ROWS_A_READ = 1_024;
/** Bytes of documents of a read at most; Milvus sends up to 64 MiB. */
const BYTES_A_READ = 2 ** 25;
/** Keys of a look-up that are sent at once. */
const KEYS_A_READ = 512;
/** Reads at once of one call. */
const READS_AT_ONCE = 4;

export interface CollectionPassages {
  readonly collection: string;
  readonly rows: number;
  /** Fields that a document is divided into. */
  readonly pieces: number;
  /** The look-ups that the passages were published with. */
  readonly lookups: readonly Lookup[];
  /** Whether the row was deleted before the publication; such rows are not in Milvus. */
  isDeleted(row: number): boolean;
}

/** The passages of a published index. */
export class MilvusPassageStore implements PassageStore {
  readonly rows: number;
  readonly failure = undefined;
  readonly #client: MilvusClient;
  readonly #passages: CollectionPassages;
  readonly #end: () => Promise<void>;
  readonly #calls = new RunningCalls('The passages are closed.');

  /** @param end closes what the client needs. */
  constructor(client: MilvusClient, passages: CollectionPassages, end: () => Promise<void> = async () => undefined) {
    this.rows = passages.rows;
    this.#client = client;
    this.#passages = passages;
    this.#end = end;
  }

  getMany(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    const { pieces } = this.#passages;
    const atOnce = Math.max(1, Math.min(ROWS_A_READ, Math.floor(BYTES_A_READ / (pieces * MAX_TEXT_BYTES))));
    const fields = [ROW_FIELD, ...pieceFields(pieces)];
    return this.#read(rows, { atOnce, fields, signal }, (entity) => documentOf(entity, pieces));
  }

  idsOf(rows: ArrayLike<number>, signal?: AbortSignal): Promise<string[]> {
    return this.#read(
      rows,
      { atOnce: ROWS_A_READ, fields: ID_FIELDS, signal },
      (entity, row) => idOf(entity) ?? rowId(row),
    );
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
      const field = lookupField(by);
      const rowsOf = new Map<string, number[]>();
      for (let at = 0; at < distinct.length; at += KEYS_A_READ) {
        const filter = `${field} in [${distinct.slice(at, at + KEYS_A_READ).join(',')}]`;
        const found = await this.#client.query(this.#passages.collection, {
          filter,
          fields: [ROW_FIELD, field],
          consistency: 'Bounded',
          signal,
        });
        for (const entity of found) {
          const hash = String(entity[field]);
          rowsOf.set(hash, [...(rowsOf.get(hash) ?? []), Number(entity[ROW_FIELD])]);
        }
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
    { atOnce, fields, signal }: { atOnce: number; fields: readonly string[]; signal: AbortSignal | undefined },
    contentOf: (entity: Entity, row: number) => string,
  ): Promise<string[]> {
    return this.#calls.run(async () => {
      const distinct = [...new Set(Array.from(rows))];
      for (const row of distinct) this.#checkRow(row);
      const contents = new Map<number, string>();
      const parts: number[][] = [];
      for (let at = 0; at < distinct.length; at += atOnce) parts.push(distinct.slice(at, at + atOnce));
      const work = async (): Promise<void> => {
        for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
          const entities = await readRows(this.#client, this.#passages.collection, { rows: part, fields, signal });
          for (const [i, row] of part.entries()) contents.set(row, contentOf(entities[i]!, row));
        }
      };
      await Promise.all(Array.from({ length: READS_AT_ONCE }, work));
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
