import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { rowId } from '../../src/index/passages/document-fields.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import type { PassageShard } from '../../src/index/passages/passage-protocol.ts';
import type { PassageStore } from '../../src/index/passages/passage-store.ts';
import { SqlitePassageStore } from '../../src/index/passages/sqlite-passage-store.ts';
import type { Hit } from '../../src/search/calls/query-outcome.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';

export interface HitIds {
  /** Reads the ids ahead if that many hits will need most of them. */
  readAll(expectedHits: number, signal: AbortSignal): Promise<void>;
  /** The ids of the hits of each list; `row:` and the row number for a passage without an id. */
  of(lists: readonly (readonly Hit[])[], signal: AbortSignal): Promise<readonly (readonly string[])[]>;
  close(): Promise<void>;
}

/** Most ids of an index that are kept. A million short ids take about 64 MB. */
const MAX_KEPT = 2 ** 20;
/** Ids that are read at once in row order, which takes about a millisecond. */
const IDS_AT_ONCE = 4096;

/** The ids that came with the hits, in the replies of a server. */
export const REPLIED_IDS: HitIds = {
  readAll: async () => undefined,
  of: async (lists) => lists.map((hits) => hits.map(({ id, row }) => id ?? rowId(row))),
  close: async () => undefined,
};

export interface NamedIndex {
  /** As in the hits of a group; undefined for the only index. */
  readonly name: string | undefined;
  readonly folder: string;
  readonly generation: string;
}

interface OpenedIndex {
  readonly name: string | undefined;
  readonly store: PassageStore;
  readonly shards: readonly PassageShard[];
}

interface OneIndex extends Omit<OpenedIndex, 'name'> {
  /** Row `rows[i]` has the id `ids[i]`; i is the row modulo the length. −1: none. */
  readonly rows: Float64Array;
  readonly ids: string[];
}

/**
 * The ids of hits. Many queries find the same passages, so ids are kept in tables of bounded size; the others are read without
 * the documents. Reading all ids in row order costs a twentieth of reading each alone.
 */
export class PassageIds implements HitIds {
  readonly #indexes: ReadonlyMap<string | undefined, OneIndex>;

  /** @param indexes are closed with it. */
  constructor(indexes: readonly OpenedIndex[]) {
    const tables = indexes.map(({ name, store, shards }): [string | undefined, OneIndex] => {
      const kept = Math.min(MAX_KEPT, Math.max(1, store.rows));
      return [name, { store, shards, rows: new Float64Array(kept).fill(-1), ids: new Array<string>(kept) }];
    });
    this.#indexes = new Map(tables);
  }

  /** @throws TrawlError INDEX_CHECKSUM_MISMATCH if an index has another generation; as `openIndexDirectory`. */
  static async open(indexes: readonly NamedIndex[]): Promise<PassageIds> {
    const opened: OpenedIndex[] = [];
    try {
      for (const { name, folder, generation } of indexes) {
        const { manifest, passages } = openIndexDirectory(folder);
        if (manifest.generation !== generation) {
          throw new TrawlError(
            'INDEX_CHECKSUM_MISMATCH',
            `${folder} was replaced by another generation while it was opened. Run the command again.`,
          );
        }
        opened.push({ name, store: await SqlitePassageStore.open(passages), shards: passages });
      }
    } catch (error) {
      await Promise.all(opened.map(({ store }) => store.close()));
      throw error;
    }
    return new PassageIds(opened);
  }

  /**
   * Reads all ids of each index that keeps all of its ids, if there will be as many hits as rows: then most of them are needed.
   *
   * @throws TrawlError CANCELLED, INDEX_FILE_MISSING, INDEX_FILE_FOREIGN.
   */
  async readAll(expectedHits: number, signal: AbortSignal): Promise<void> {
    for (const { store, shards, rows, ids } of this.#indexes.values()) {
      if (expectedHits < store.rows || rows.length < store.rows) continue;
      for (const shard of shards) {
        const file = new PassageFile(shard.path);
        try {
          for (let first = 0; first < shard.rows; first += IDS_AT_ONCE) {
            throwIfCancelled(signal);
            for (const [i, id] of file.idRange(first, Math.min(IDS_AT_ONCE, shard.rows - first)).entries()) {
              const row = shard.firstRow + first + i;
              rows[row] = row;
              ids[row] = id ?? rowId(row);
            }
            await yieldToEventLoop();
          }
        } finally {
          file.close();
        }
      }
    }
  }

  async of(lists: readonly (readonly Hit[])[], signal: AbortSignal): Promise<readonly (readonly string[])[]> {
    const missing = new Map<OneIndex, Set<number>>();
    const ids = lists.map((hits) =>
      hits.map((hit) => {
        const { index, row } = this.#placeOf(hit);
        const slot = row % index.rows.length;
        if (index.rows[slot] === row) return index.ids[slot]!;
        if (!missing.has(index)) missing.set(index, new Set());
        missing.get(index)!.add(row);
        return undefined;
      }),
    );
    if (missing.size === 0) return ids as string[][];
    const read = new Map<OneIndex, ReadonlyMap<number, string>>();
    for (const [index, set] of missing) {
      const rows = [...set];
      const found = await index.store.idsOf(rows, signal);
      read.set(index, new Map(rows.map((row, i) => [row, found[i]!])));
      for (const [i, row] of rows.entries()) {
        index.rows[row % index.rows.length] = row;
        index.ids[row % index.rows.length] = found[i]!;
      }
    }
    return ids.map((list, q) =>
      list.map((id, i) => {
        if (id !== undefined) return id;
        const { index, row } = this.#placeOf(lists[q]![i]!);
        return read.get(index)!.get(row)!;
      }),
    );
  }

  async close(): Promise<void> {
    await Promise.all([...this.#indexes.values()].map(({ store }) => store.close()));
  }

  #placeOf({ row, source }: Hit): { index: OneIndex; row: number } {
    return { index: this.#indexes.get(source?.index)!, row: source?.row ?? row };
  }
}
