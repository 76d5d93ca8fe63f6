import { bug } from '../../base/errors.ts';
import { answerCalls } from '../../base/system/thread-calls.ts';
import { writeFailure } from '../../base/system/write-failure.ts';
import { DocumentStore } from './document-store.ts';
import type { IndexDefinition } from './index-files.ts';
import type { Failure, StoredDocument, WriteItem } from './operations.ts';
import { parseBulk, type RequestedOperation } from './parse-bulk.ts';
import { missingIndexes, type OpenStore, writeDocuments } from './write-documents.ts';

const stores = new Map<string, OpenStore>();

interface WriteRequest {
  /** A `_bulk` body, or operations. */
  readonly body: string | readonly RequestedOperation[];
  /** The index of operations that name none. */
  readonly index?: string;
  /** Indexes that cannot be written, and why. */
  readonly refusals: Readonly<Record<string, Failure>>;
}

type WriteAnswer =
  /** The request is refused as a whole. */
  | { readonly type: 'refused'; readonly failure: Failure }
  /** Nothing is done yet: these indexes do not exist. */
  | { readonly type: 'missing'; readonly indexes: readonly string[] }
  /** Nothing is done yet: documents have the first vectors of these indexes, with so many values. */
  | { readonly type: 'dimensions'; readonly dimensions: ReadonlyMap<string, number> }
  | {
      readonly type: 'written';
      readonly items: readonly WriteItem[];
      /** The number of the last change of each index that the request names. */
      readonly lastSeqNos: ReadonlyMap<string, number>;
    };

/** What the thread can be asked. */
const calls = {
  /** Makes a store without documents and closes it. */
  make({ path }: { readonly path: string }): void {
    new DocumentStore(path).close();
  },

  /** Opens the store of an index. Returns the number of its last change, -1 without one. */
  open({ definition, path }: { readonly definition: IndexDefinition; readonly path: string }): number {
    const store = new DocumentStore(path);
    stores.set(definition.name, { definition, store });
    return store.lastSeqNo;
  },

  /** Replaces the definition of an open index. */
  define({ definition }: { readonly definition: IndexDefinition }): void {
    const open = stores.get(definition.name);
    if (open !== undefined) stores.set(definition.name, { ...open, definition });
  },

  close({ name }: { readonly name: string }): void {
    stores.get(name)?.store.close();
    stores.delete(name);
  },

  write({ body, index, refusals }: WriteRequest): WriteAnswer {
    const operations = typeof body === 'string' ? parseBulk(body, index) : body;
    if ('reason' in operations) return { type: 'refused', failure: operations };
    const missing = missingIndexes(operations, stores, refusals);
    if (missing.length > 0) return { type: 'missing', indexes: missing };
    const items = writeDocuments(operations, stores, refusals);
    if ('dimensions' in items) return { type: 'dimensions', ...items };
    const named = [...new Set(items.map((item) => item.index))].filter((name) => stores.has(name));
    return {
      type: 'written',
      items,
      lastSeqNos: new Map(named.map((name) => [name, stores.get(name)!.store.lastSeqNo])),
    };
  },

  read({ name, ids }: { readonly name: string; readonly ids: readonly string[] }): (StoredDocument | null)[] {
    const open = stores.get(name);
    if (open === undefined) throw bug(`documents of ${name} were asked for, which is not open`);
    return ids.map((id) => open.store.get(id) ?? null);
  },
};
export type StoreCalls = typeof calls;

answerCalls(
  async () =>
    ({ name, asked }: { readonly name: keyof StoreCalls; readonly asked: { readonly path?: string } }) => {
      try {
        return calls[name](asked as never);
      } catch (error) {
        throw writeFailure(error, asked.path ?? 'the folder of --writable');
      }
    },
  () => {
    for (const { store } of stores.values()) store.close();
  },
);
