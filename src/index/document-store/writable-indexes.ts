import type { IndexDefinition } from './index-files.ts';
import type { Failure, StoredDocument, WriteItem } from './operations.ts';
import type { RequestedOperation } from './parse-bulk.ts';

/** The indexes that are made and filled over HTTP. */
export interface WritableIndexes {
  /** Undefined for an index that does not exist or is not written over HTTP. */
  definition(name: string): IndexDefinition | undefined;
  /**
   * Makes an index without documents; searches find it when this resolves.
   *
   * @throws TrawlError INDEX_EXISTS, DISK_FULL, OUTPUT_NOT_WRITABLE, NOT_READY while the server stops; CONFIG_INVALID if a view of the
   * server needs a column that the definition does not have.
   */
  create(definition: IndexDefinition): Promise<void>;
  /** Removes an index and its documents. Searches that have begun end. @throws TrawlError NOT_FOUND. */
  remove(name: string): Promise<void>;
  /** Changes `settings` alone. @throws TrawlError NOT_FOUND, DISK_FULL, OUTPUT_NOT_WRITABLE. */
  change(name: string, settings: IndexDefinition['settings']): Promise<void>;
  /**
   * Does the given operations, or the operations of a `_bulk` body. What is answered is on the disk; searches find it after a
   * refresh. `make` gives the definition of an index that does not exist, or why it is not made.
   */
  write(
    body: string | readonly RequestedOperation[],
    index: string | undefined,
    make: (name: string) => IndexDefinition | Failure,
  ): Promise<readonly WriteItem[] | Failure>;
  /** Documents as they are now, in the order of their ids. @throws TrawlError NOT_FOUND. */
  read(name: string, ids: readonly string[]): Promise<readonly (StoredDocument | null)[]>;
  /**
   * To be called before a search: after half a minute without one, the search waits for what was written, as in Elasticsearch, unless the
   * settings have a `refresh_interval`. Nothing for other indexes.
   */
  beforeSearch(name: string): Promise<void>;
  /**
   * Makes all documents visible to searches that were stored before the call. Calls at the same time share the work.
   *
   * @throws TrawlError NOT_FOUND, DISK_FULL, OUTPUT_NOT_WRITABLE: searches keep what they had, and no document is lost.
   */
  refresh(name: string): Promise<void>;
}
