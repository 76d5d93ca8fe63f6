import type { IndexDefinition } from './index-definition.ts';
import type { Failure, StoredDocument, WriteItem } from './operations.ts';
import type { RequestedOperation } from './parse-bulk.ts';

/** What the thread of the stores can be asked. */
export interface StoreRequests {
  /** Makes a store without documents and closes it. */
  readonly make: { readonly asked: { readonly path: string }; readonly answer: null };
  /** Opens the store of an index. Its answer is the number of its last change, -1 without one. */
  readonly open: {
    readonly asked: { readonly definition: IndexDefinition; readonly path: string };
    readonly answer: number;
  };
  readonly close: { readonly asked: { readonly name: string }; readonly answer: null };
  readonly write: { readonly asked: WriteRequest; readonly answer: WriteAnswer };
  readonly read: {
    readonly asked: { readonly name: string; readonly ids: readonly string[] };
    readonly answer: readonly (StoredDocument | null)[];
  };
}

export interface WriteRequest {
  /** A `_bulk` body, or operations. */
  readonly body: string | readonly RequestedOperation[];
  /** The index of operations that name none. */
  readonly index?: string;
  /** Indexes that cannot be written, and why. */
  readonly refusals: Readonly<Record<string, Failure>>;
}

export type WriteAnswer =
  /** The request is refused as a whole. */
  | { readonly type: 'refused'; readonly failure: Failure }
  /** Nothing is done yet: these indexes do not exist. */
  | { readonly type: 'missing'; readonly indexes: readonly string[] }
  | {
      readonly type: 'written';
      readonly items: readonly WriteItem[];
      /** The number of the last change of each index that the request names. */
      readonly lastSeqNos: ReadonlyMap<string, number>;
    };

export type StoreCall = {
  readonly [Name in keyof StoreRequests]: {
    readonly name: Name;
    readonly asked: StoreRequests[Name]['asked'];
  };
}[keyof StoreRequests];
