import { realpath } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import { folderSnapshot } from '../../index/files/index-snapshot.ts';
import type { OpenRetriever, Retriever } from '../../search/retriever.ts';
import {
  addStatistics,
  countsOnly,
  NO_STATISTICS,
  type RetrieverStatistics,
  withoutLimits,
} from '../../search/retriever-statistics.ts';

/**
 * Stages of opening an index, in order. `reading` reads files into memory, only with --warm; `loading` loads the encoder, only if the
 * index is searched by vectors; `warming` answers the first query.
 */
export const OPEN_STAGES = ['waiting', 'reading', 'verifying', 'loading', 'mapping', 'warming', 'ready'] as const;
type OpenStage = (typeof OPEN_STAGES)[number];

export interface OpenProgress {
  readonly stage: OpenStage;
  /** The stage in words, without paths. */
  readonly doing: string;
  /** Progress in bytes, if known. */
  readonly done?: number;
  readonly total?: number;
}

/** Locations of an index and its query encoder. */
export interface IndexTarget {
  readonly folder: string;
  /** Folder or name of the query encoder. Default: the encoder recorded in the manifest. */
  readonly model?: string;
}

interface FolderState {
  /** With links resolved, so that it leads to the same files after a link was replaced. */
  readonly folder: string;
  /** Identifies the manifests; null if they could not be read by themselves. */
  readonly snapshot: string | null;
}

/** An index as it was when the server opened it. */
interface OpenedIndex extends FolderState {
  readonly generation: string;
}

export type OpenIndex = (
  name: string,
  target: IndexTarget,
  report: (progress: OpenProgress) => void,
) => Promise<OpenRetriever>;

/** Called with the error if a replaced retriever cannot be closed. The one that answers is another, so the server goes on. */
export type OnCloseFailed = (index: string, error: unknown) => void;

/** Keeps a retriever open for a request until it is released, even if a reload replaces the retriever. */
export interface Lease {
  readonly retriever: Retriever;
  release(): void;
}

/** How many opened indexes a slot remembers, for a way back. */
const MAX_OPENED = 8;

/** An index must answer this query before it is ready; it exercises encoder, engine and passages. */
const FIRST_QUERY = 'the first query';

/**
 * A named index of the server, whose retriever changes with each reload. A reload opens the new index and its encoder beside the
 * old ones, lets the new index answer a query, and replaces the old index atomically. The old index is closed after its last
 * request.
 */
export class IndexSlot {
  readonly name: string;
  readonly #open: OpenIndex | undefined;
  readonly #onCloseFailed: OnCloseFailed;
  readonly #targetAtStart: IndexTarget | undefined;
  #target: IndexTarget | undefined;
  #opened: readonly OpenedIndex[] = [];
  #current: Leased<OpenRetriever> | undefined;
  /** Replaced retrievers that requests still use. */
  readonly #draining = new Set<Leased<OpenRetriever>>();
  /** Sum of the counters of closed retrievers. */
  #past = NO_STATISTICS;
  #progress: OpenProgress = { stage: 'waiting', doing: 'waiting for other indexes' };
  /** Resolves when the loads requested so far have ended. */
  #loads: Promise<unknown> = Promise.resolve();
  #openedAt = 0;
  #stopping = false;
  #closed = false;

  constructor(name: string, target?: IndexTarget, open?: OpenIndex, onCloseFailed: OnCloseFailed = () => undefined) {
    this.name = name;
    this.#onCloseFailed = onCloseFailed;
    this.#targetAtStart = target;
    this.#target = target;
    this.#open = open;
  }

  get retriever(): OpenRetriever | undefined {
    return this.#current?.resource;
  }

  /** The folder that a restart of the server opens; undefined if the slot was given an open index. */
  get folderAtStart(): string | undefined {
    return this.#targetAtStart?.folder;
  }

  /** What was opened, the current index last. */
  get opened(): readonly OpenedIndex[] {
    return this.#opened;
  }

  /** When the current retriever began to get requests, in milliseconds since 1970; 0 before that. */
  get openedAt(): number {
    return this.#openedAt;
  }

  /** Progress of the first load or of a running reload; `ready` otherwise. */
  get progress(): OpenProgress {
    return this.#progress;
  }

  /** Number of replaced generations that still have requests. */
  get draining(): number {
    return this.#draining.size;
  }

  /** Sums over all generations: gauges over the open ones, counters over all, so that counters never decrease. */
  get statistics(): RetrieverStatistics | undefined {
    if (this.#current === undefined) return undefined;
    return [...this.#draining]
      .map(({ resource }) => withoutLimits(resource.statistics()))
      .reduce(addStatistics, addStatistics(this.#past, this.#current.resource.statistics()));
  }

  report(progress: OpenProgress): void {
    this.#progress = progress;
  }

  lease(): Lease | undefined {
    const current = this.#current;
    return current && { retriever: current.resource, release: current.lease() };
  }

  set(retriever: OpenRetriever): void {
    const old = this.#current;
    this.#current = new Leased(retriever);
    this.#openedAt = Date.now();
    this.#progress = { stage: 'ready', doing: 'ready' };
    if (old !== undefined) this.#retire(old);
  }

  /** @throws TrawlError NOT_SUPPORTED if the slot was given an open index, and so knows no folder to load it from. */
  requireFolder(): { readonly open: OpenIndex; readonly target: IndexTarget } {
    if (this.#open !== undefined && this.#target !== undefined) return { open: this.#open, target: this.#target };
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Index ${this.name} cannot be reloaded: the server was created with an open index and does not know its folder.`,
    );
  }

  /**
   * Opens or reloads the index; resolves when it gets requests. Concurrent calls run one after another. If opening fails, the
   * current index stays.
   *
   * @throws TrawlError the error of opening; NOT_READY if the server stops before or while it opens; as `requireFolder`.
   */
  load(change: Partial<IndexTarget> = {}): Promise<OpenRetriever> {
    const loading = this.#loads.then(() => this.#load(change));
    this.#loads = loading.catch(() => undefined);
    return loading;
  }

  async #load(change: Partial<IndexTarget>): Promise<OpenRetriever> {
    const { open, target: current } = this.requireFolder();
    if (this.#stopping) throw serverStopping();
    // A new folder gets the encoder configured at the start; the encoder of the last reload may not match the new index.
    const model = change.folder === undefined ? {} : { model: this.#targetAtStart?.model };
    const target = { ...current, ...model, ...change };
    let opened: OpenRetriever | undefined;
    // Not awaited, so that opening is not delayed.
    const before = folderState(target.folder);
    let state: FolderState;
    try {
      opened = await open(this.name, target, (progress) => this.report(progress));
      this.report({ stage: 'warming', doing: 'answering the first query' });
      await answerOne(opened);
      state = await folderState(target.folder);
      const { folder, snapshot } = await before;
      // A link or a manifest that was replaced meanwhile does not say what was opened.
      if (folder !== state.folder || snapshot !== state.snapshot) state = { folder: state.folder, snapshot: null };
      if (this.#closed) throw serverStopping();
    } catch (error) {
      await opened?.close();
      if (this.#current !== undefined) this.#progress = { stage: 'ready', doing: 'ready' };
      throw error;
    }
    this.#target = target;
    this.set(opened);
    this.#opened = [...this.#opened, { generation: opened.info.generation, ...state }].slice(-MAX_OPENED);
    return opened;
  }

  /** Lets a running load finish and refuses later ones. */
  stop(): void {
    this.#stopping = true;
  }

  #retire(old: Leased<OpenRetriever>): void {
    this.#draining.add(old);
    void old
      .retire()
      .catch((error: unknown) => this.#onCloseFailed(this.name, error))
      .finally(() => {
        this.#draining.delete(old);
        this.#past = addStatistics(this.#past, countsOnly(old.resource.statistics()));
      });
  }

  /** Waits for a running load and all requests, then closes all retrievers. */
  async close(): Promise<void> {
    this.stop();
    this.#closed = true;
    await this.#loads;
    await Promise.all([this.#current, ...this.#draining].map((each) => each?.retire()));
  }
}

async function folderState(folder: string): Promise<FolderState> {
  const snapshot = await folderSnapshot(folder).catch(() => undefined);
  return { folder: await realpath(folder).catch(() => folder), snapshot: snapshot?.id ?? null };
}

export function serverStopping(): TrawlError {
  return new TrawlError(
    'NOT_READY',
    'The server is stopping. Send the request to another server, or again after its restart.',
  );
}

/** @throws the query's error: an index that cannot answer a query is not ready. A replayed index need not have recorded this one. */
async function answerOne(retriever: Retriever): Promise<void> {
  const { outcomes } = await retriever.retrieve({ queries: [FIRST_QUERY], k: 1 });
  for (const outcome of outcomes) if (!outcome.ok && outcome.error.code !== 'NOT_RECORDED') throw outcome.error;
}

/** Something that requests use at the same time. Once it is retired, it is closed after the last of them. */
export class Leased<Resource extends { close(): Promise<void> }> {
  readonly resource: Resource;
  #leases = 0;
  #onLastRelease: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(resource: Resource) {
    this.resource = resource;
  }

  get isUsed(): boolean {
    return this.#leases > 0;
  }

  /** Returns the release, which may be called twice. No lease may be taken after `retire`. */
  lease(): () => void {
    this.#leases++;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#leases--;
      if (this.#leases === 0) this.#onLastRelease?.();
    };
  }

  /** Closes the resource after its last lease. Safe to call twice. */
  retire(): Promise<void> {
    this.#closing ??= new Promise<void>((resolve) => {
      if (this.#leases === 0) resolve();
      else this.#onLastRelease = resolve;
    }).then(() => this.resource.close());
    return this.#closing;
  }
}
