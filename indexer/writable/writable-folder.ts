import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { asTrawlError, TrawlError } from '../../src/base/errors.ts';
import { syncFolder } from '../../src/base/system/durable-file.ts';
import { FileLock } from '../../src/base/system/file-lock.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { type IndexDefinition, IndexFiles } from '../../src/index/document-store/index-files.ts';
import type { Failure, StoredDocument, WriteItem } from '../../src/index/document-store/operations.ts';
import type { RequestedOperation } from '../../src/index/document-store/parse-bulk.ts';
import { StoreThread } from '../../src/index/document-store/store-thread.ts';
import type { WritableIndexes } from '../../src/index/document-store/writable-indexes.ts';
import { OneAtATime } from '../../src/search/one-at-a-time.ts';
import type { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot, type OnCloseFailed, type OpenIndex } from '../../src/server/indexes/index-slot.ts';
import { refreshInChild } from './refresh-child.ts';
import type { DoRefreshJob } from './refresh-job.ts';
import { WritableIndex, type WritableParts } from './writable-index.ts';

/** Prefixes of the names of half-made and half-removed indexes. */
const [CREATING, DELETED] = ['.creating-', '.deleted-'];
/** The folder before the first one. */
const NONE = { folder: 'index-0' };

type RefreshEvents = Pick<WritableParts, 'onRefreshed' | 'onFailure'>;

/** The folder of `--writable`, with a folder for each index that was made over HTTP. */
export class WritableFolder implements WritableIndexes {
  readonly #folder: string;
  readonly #lock: FileLock;
  readonly #found: readonly IndexFiles[];
  readonly #indexes = new Map<string, WritableIndex>();
  readonly #parts: WritableParts;
  /** Indexes are made and removed one after another. */
  readonly #changes = new OneAtATime();
  readonly #closing = new AbortController();
  /** Removed indexes that searches still use. */
  readonly #removing = new Set<Promise<void>>();
  #server:
    | { readonly holder: IndexRegistry; readonly open: OpenIndex; readonly onCloseFailed: OnCloseFailed | undefined }
    | undefined;

  private constructor(folder: string, lock: FileLock, events: RefreshEvents, doJob: DoRefreshJob) {
    this.#folder = folder;
    this.#lock = lock;
    this.#parts = { thread: new StoreThread(), jobs: new OneAtATime(), doJob, ...events };
    const entries = readdirSync(folder, { withFileTypes: true });
    for (const { name } of entries) {
      if (name.startsWith(CREATING) || name.startsWith(DELETED)) {
        rmSync(join(folder, name), { recursive: true, force: true });
      }
    }
    this.#found = entries
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
      .map(({ name }) => new IndexFiles(join(folder, name)))
      .filter(({ exists }) => exists);
  }

  /**
   * Makes the folder if needed and locks it.
   *
   * @throws TrawlError BUILD_LOCKED if another server has the folder, OUTPUT_NOT_WRITABLE, DISK_FULL.
   */
  static prepare(path: string, events: RefreshEvents, doJob: DoRefreshJob = refreshInChild): WritableFolder {
    const folder = resolve(path);
    let lock: FileLock | undefined;
    try {
      mkdirSync(folder, { recursive: true });
      lock = FileLock.acquire(join(folder, '.lock'), 'exclusive');
      if (lock !== undefined) return new WritableFolder(folder, lock, events, doJob);
    } catch (error) {
      lock?.release();
      throw writeFailure(error, folder);
    }
    throw new TrawlError(
      'BUILD_LOCKED',
      `--writable ${folder}: another server has the folder. Stop it, or choose another folder.`,
    );
  }

  /** The indexes in the folder. @throws TrawlError INDEX_MANIFEST_INVALID. */
  targets(): { readonly name: string; readonly folder: string }[] {
    return this.#found.map((files) => ({
      name: files.definition().name,
      folder: join(files.folder, files.current().folder),
    }));
  }

  /** Opens the documents of the indexes, whose slots the server has made of `targets`. */
  async attach(holder: IndexRegistry, open: OpenIndex, onCloseFailed?: OnCloseFailed): Promise<void> {
    this.#server = { holder, open, onCloseFailed };
    for (const files of this.#found) {
      const current = files.current();
      await files.removeOthers(current);
      await this.#adopt(files, holder.slot(files.definition().name));
    }
  }

  definition(name: string): IndexDefinition | undefined {
    return this.#indexes.get(name)?.definition;
  }

  create(definition: IndexDefinition): Promise<void> {
    return this.#changes.run(() => this.#create(definition), this.#closing.signal);
  }

  remove(name: string): Promise<void> {
    return this.#changes.run(() => this.#remove(name), this.#closing.signal);
  }

  change(name: string, settings: IndexDefinition['settings']): Promise<void> {
    return this.#changes.run(() => this.#index(name).change(settings), this.#closing.signal);
  }

  async write(
    body: string | readonly RequestedOperation[],
    index: string | undefined,
    make: (name: string) => IndexDefinition | Failure,
  ): Promise<readonly WriteItem[] | Failure> {
    const refusals: Record<string, Failure> = {};
    for (;;) {
      const answer = await this.#parts.thread.ask('write', { body, index, refusals });
      if (answer.type === 'refused') return answer.failure;
      if (answer.type === 'written') {
        for (const [name, lastSeqNo] of answer.lastSeqNos) this.#indexes.get(name)?.wrote(lastSeqNo);
        return answer.items;
      }
      for (const name of answer.indexes) {
        const refusal = await this.#makeFor(name, make);
        if (refusal !== undefined) refusals[name] = refusal;
      }
    }
  }

  async read(name: string, ids: readonly string[]): Promise<readonly (StoredDocument | null)[]> {
    return this.#parts.thread.ask('read', { name: this.#index(name).definition.name, ids });
  }

  async beforeSearch(name: string): Promise<void> {
    await this.#indexes.get(name)?.beforeSearch();
  }

  refresh(name: string): Promise<void> {
    return this.#index(name).refresh();
  }

  /** Stops refreshes and closes the documents. What was not refreshed will be after the next start. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#indexes.values()].map((index) => index.close()));
    await this.#parts.thread.close();
    await Promise.all(this.#removing);
    this.#lock.release();
  }

  #index(name: string): WritableIndex {
    const index = this.#indexes.get(name);
    if (index !== undefined) return index;
    throw new TrawlError('NOT_FOUND', `No index with the name ${name} can be written.`);
  }

  /** Makes an index that a write names. Returns why it is not made; undefined if it is there now. */
  async #makeFor(name: string, make: (name: string) => IndexDefinition | Failure): Promise<Failure | undefined> {
    const made = make(name);
    if ('reason' in made) return made;
    try {
      await this.create(made);
      return undefined;
    } catch (error) {
      const { code, message } = asTrawlError(error);
      // Another request was faster.
      if (code === 'INDEX_EXISTS' && this.#indexes.has(name)) return undefined;
      if (code === 'INDEX_EXISTS') {
        const reason = `index [${name}] blocked by: [FORBIDDEN/8/index write (api)]; it was not made over HTTP`;
        return { status: 403, type: 'cluster_block_exception', reason };
      }
      // A view of the server needs a column that the index does not have.
      if (code === 'CONFIG_INVALID') return { status: 400, type: 'illegal_argument_exception', reason: message };
      if (code !== 'DISK_FULL' && code !== 'OUTPUT_NOT_WRITABLE') throw error;
      return { status: 429, type: 'cluster_block_exception', reason: message };
    }
  }

  async #create(definition: IndexDefinition): Promise<void> {
    const { holder, open, onCloseFailed } = this.#server!;
    const { name } = definition;
    holder.requireFree(name);
    const work = new IndexFiles(join(this.#folder, `${CREATING}${name}`));
    const files = new IndexFiles(join(this.#folder, name));
    try {
      await rm(work.folder, { recursive: true, force: true });
      await mkdir(work.folder);
      await work.saveDefinition(definition);
      // SQLite must not have the file open while its folder is renamed.
      await this.#parts.thread.ask('make', { path: work.store });
      const { folder, ...places } = work.next(NONE);
      const job = { definition, store: work.store, ...places };
      await this.#parts.jobs.run(() => this.#parts.doJob(job, this.#closing.signal), this.#closing.signal);
      await work.saveCurrent({ folder, seqNo: -1 });
      await rename(work.folder, files.folder);
      await syncFolder(this.#folder);
    } catch (error) {
      await rm(work.folder, { recursive: true, force: true });
      throw writeFailure(error, files.folder);
    }
    const slot = new IndexSlot(name, { folder: join(files.folder, files.current().folder) }, open, onCloseFailed);
    try {
      await slot.load();
      holder.add(slot);
    } catch (error) {
      await slot.close();
      await rm(files.folder, { recursive: true, force: true });
      throw withoutViews(name, error);
    }
    await this.#adopt(files, slot);
  }

  async #adopt(files: IndexFiles, slot: IndexSlot): Promise<void> {
    const [definition, current] = [files.definition(), files.current()];
    const lastSeqNo = await this.#parts.thread.ask('open', { definition, path: files.store });
    this.#indexes.set(definition.name, new WritableIndex(files, { definition, current, lastSeqNo }, slot, this.#parts));
  }

  async #remove(name: string): Promise<void> {
    const index = this.#index(name);
    const slot = this.#server!.holder.remove(name);
    this.#indexes.delete(name);
    await index.close();
    const removed = join(this.#folder, `${DELETED}${randomUUID()}`);
    await rename(index.files.folder, removed);
    await syncFolder(this.#folder);
    // Searches that have begun read the files to their end.
    const removing = slot
      .close()
      .then(() => rm(removed, { recursive: true, force: true }))
      // The next start tries again.
      .catch(() => undefined)
      .then(() => {
        this.#removing.delete(removing);
      });
    this.#removing.add(removing);
  }
}

/** The error of an index that lacks a column of a view, with the way out; others as they are. */
function withoutViews(name: string, error: unknown): unknown {
  const { code, message } = asTrawlError(error);
  if (code !== 'CONFIG_INVALID') return error;
  const wayOut =
    'Map the columns of the views when the index is made, or list in "indexes" of a view the indexes that have it.';
  return new TrawlError('CONFIG_INVALID', `The index ${name} was not made. ${message} ${wayOut}`, { cause: error });
}
