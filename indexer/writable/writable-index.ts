import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { Current, IndexDefinition, IndexFiles } from '../../src/index/document-store/index-files.ts';
import type { StoreThread } from '../../src/index/document-store/store-thread.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import type { OneAtATime } from '../../src/search/one-at-a-time.ts';
import type { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import type { DoRefreshJob } from './refresh-job.ts';
import { Refresher } from './refresher.ts';

export interface WritableParts {
  readonly thread: StoreThread;
  readonly jobs: OneAtATime;
  readonly doJob: DoRefreshJob;
  readonly onRefreshed: (index: string, seconds: number) => void;
  /** A refresh failed that nobody waited for, or that is done in another way. */
  readonly onFailure: (index: string, error: unknown) => void;
}

/** With more shards or deleted rows, a refresh builds the index anew: a search looks into every shard. */
const MAX_SHARDS = 16;

/** Elasticsearch's `index.search.idle.after`. */
const SEARCH_IDLE_MS = 30_000;

/** An index that is written over HTTP: its documents, the index of the last refresh, and the slot that serves it. */
export class WritableIndex {
  readonly files: IndexFiles;
  readonly slot: IndexSlot;
  readonly #parts: WritableParts;
  readonly #refresher: Refresher;
  readonly #closing = new AbortController();
  #definition: IndexDefinition;
  #current: Current;
  #lastSeqNo: number;
  /** The last search, by `performance.now()`. */
  #lastSearch = Number.NEGATIVE_INFINITY;
  /** The refresh that searches wait for. */
  #waking: Promise<void> | undefined;

  /** @param lastSeqNo number of the last change in the store, which `parts.thread` has open. */
  constructor(
    files: IndexFiles,
    state: { readonly definition: IndexDefinition; readonly current: Current; readonly lastSeqNo: number },
    slot: IndexSlot,
    parts: WritableParts,
  ) {
    this.files = files;
    this.slot = slot;
    this.#parts = parts;
    this.#definition = state.definition;
    this.#current = state.current;
    this.#lastSeqNo = state.lastSeqNo;
    this.#refresher = new Refresher({
      refresh: () => parts.jobs.run(() => this.#refresh(), this.#closing.signal),
      isPending: () => this.#current.seqNo < this.#lastSeqNo,
      intervalMs: () => this.#definition.settings.refreshMs,
      onFailure: (error) => parts.onFailure(this.#definition.name, error),
    });
    // Documents that were stored before the server ended.
    if (this.#current.seqNo < this.#lastSeqNo) this.#refresher.soon();
  }

  get definition(): IndexDefinition {
    return this.#definition;
  }

  wrote(lastSeqNo: number): void {
    this.#lastSeqNo = Math.max(this.#lastSeqNo, lastSeqNo);
    if (this.#current.seqNo < this.#lastSeqNo) this.#refresher.wrote();
  }

  refresh(): Promise<void> {
    return this.#refresher.request();
  }

  /** Clients that fill an index, rest for a second or two and search find everything, however long the refresh takes. */
  async beforeSearch(): Promise<void> {
    const now = performance.now();
    const isIdle = now - this.#lastSearch > SEARCH_IDLE_MS;
    this.#lastSearch = now;
    const { name, settings } = this.#definition;
    if (isIdle && settings.refreshInterval === undefined) {
      const refreshed = this.refresh().catch((error) => this.#parts.onFailure(name, error));
      const waking = refreshed.finally(() => {
        if (this.#waking === waking) this.#waking = undefined;
      });
      this.#waking = waking;
    }
    await this.#waking;
  }

  async change(settings: IndexDefinition['settings']): Promise<void> {
    const definition = { ...this.#definition, settings };
    await this.files.saveDefinition(definition);
    this.#definition = definition;
    if (this.#current.seqNo < this.#lastSeqNo) this.#refresher.wrote();
  }

  /** Ends a running refresh and closes the store; the slot stays as it is. Resolves when no file is written any more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#refresher.close();
    await this.#parts.thread.ask('close', { name: this.#definition.name });
  }

  async #refresh(): Promise<void> {
    const began = performance.now();
    try {
      await this.#buildNext();
    } finally {
      // The index before, or what a failed refresh has left, which takes space on a full disk.
      await this.files.removeOthers(this.#current);
    }
    this.#parts.onRefreshed(this.#definition.name, (performance.now() - began) / 1000);
  }

  async #buildNext(): Promise<void> {
    const { folder, ...places } = this.files.next(this.#current);
    const job = { definition: this.#definition, store: this.files.store, ...places };
    const base = { folder: join(this.files.folder, this.#current.folder), seqNo: this.#current.seqNo };
    const { signal } = this.#closing;
    const { doJob } = this.#parts;
    const adds = this.#addsTo(base.folder);
    const { seqNo } = await doJob(adds ? { ...job, base } : job, signal).catch((error: unknown) => {
      if (!adds || !isFaultOfIndex(error)) throw error;
      this.#parts.onFailure(this.#definition.name, error);
      return doJob(job, signal);
    });
    await this.slot.load({ folder: job.out });
    const current = { folder, seqNo };
    await this.files.saveCurrent(current);
    this.#current = current;
  }

  /** Whether to add the changes to the index, which takes less time than to build it anew if they are few. */
  #addsTo(folder: string): boolean {
    const { rows, shards, tombstones } = readIndexManifest(folder);
    const live = rows - (tombstones?.rows ?? 0);
    const changes = this.#lastSeqNo - this.#current.seqNo;
    return live > 0 && changes <= live / 2 && live >= rows / 2 && shards.length < MAX_SHARDS;
  }
}

/** Whether building the index anew may succeed. */
function isFaultOfIndex(error: unknown): boolean {
  if (!(error instanceof TrawlError)) return true;
  return !['CANCELLED', 'DISK_FULL', 'OUTPUT_NOT_WRITABLE', 'OUT_OF_MEMORY'].includes(error.code);
}
