import { realpath } from 'node:fs/promises';
import { TrawlError } from '../../base/errors.ts';
import { folderSnapshot } from '../../index/files/folder-snapshot.ts';
import type { OpenRetriever, Retriever } from '../../search/retriever.ts';
import {
  countsOf,
  NO_STATISTICS,
  type RetrieverStatistics,
  sumOf,
  withoutLimits,
} from '../../search/retriever-statistics.ts';
import { Leased } from './leased.ts';

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

/** An index as it was when the server opened it. */
export interface OpenedIndex {
  readonly generation: string;
  /** Identifies the manifests; null if they could not be read by themselves. */
  readonly snapshot: string | null;
  /** With links resolved, so that it leads to the same files after a link was replaced. */
  readonly folder: string;
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
  #target: IndexTarget | undefined;
  readonly #modelAtStart: string | undefined;
  readonly #folderAtStart: string | undefined;
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
    this.#target = target;
    this.#modelAtStart = target?.model;
    this.#folderAtStart = target?.folder;
    this.#open = open;
  }

  get retriever(): OpenRetriever | undefined {
    return this.#current?.resource;
  }

  /** The folder that a restart of the server opens; undefined as for `requireFolder`. */
  get folderAtStart(): string | undefined {
    return this.#folderAtStart;
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
      .reduce(sumOf, sumOf(this.#past, this.#current.resource.statistics()));
  }

  report(progress: OpenProgress): void {
    this.#progress = progress;
  }

  lease(): Lease | undefined {
    const current = this.#current;
    return current && { retriever: current.resource, release: current.lease() };
  }

  /** Replaces the current retriever by an open one. */
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
    const target = { ...current, ...this.#modelFor(change), ...change };
    let opened: OpenRetriever | undefined;
    // Not awaited, so that opening is not delayed.
    const before = stateOf(target.folder);
    let state: Pick<OpenedIndex, 'folder' | 'snapshot'>;
    try {
      opened = await open(this.name, target, (progress) => this.report(progress));
      this.report({ stage: 'warming', doing: 'answering the first query' });
      await answerOne(opened);
      state = sameState(await before, await stateOf(target.folder));
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

  /** A new folder gets the encoder configured at the start; the encoder of the last reload may not match the new index. */
  #modelFor({ folder }: Partial<IndexTarget>): { readonly model?: string } {
    return folder === undefined ? {} : { model: this.#modelAtStart };
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
        this.#past = sumOf(this.#past, countsOf(old.resource.statistics()));
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

/** A link or a manifest that was replaced meanwhile does not say what was opened. */
function sameState(
  before: Pick<OpenedIndex, 'folder' | 'snapshot'>,
  after: Pick<OpenedIndex, 'folder' | 'snapshot'>,
): Pick<OpenedIndex, 'folder' | 'snapshot'> {
  const isSame = before.folder === after.folder && before.snapshot === after.snapshot;
  return isSame ? after : { folder: after.folder, snapshot: null };
}

async function stateOf(folder: string): Promise<Pick<OpenedIndex, 'folder' | 'snapshot'>> {
  return {
    folder: await realpath(folder).catch(() => folder),
    snapshot: await folderSnapshot(folder).then(
      ({ id }) => id,
      () => null,
    ),
  };
}

/** What a server that stops answers. */
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
