import { TrawlError } from '../errors.ts';
import type { Retriever, RetrieverStatistics } from '../retrieval/retriever.ts';
import { countsOf, NO_STATISTICS, sumOf, withoutBounds } from '../retrieval/statistics-sum.ts';

/** What opening an index is doing, in the order it happens. `reading` only where it was asked for. */
export const OPEN_STAGES = ['waiting', 'verifying', 'loading', 'mapping', 'reading', 'warming', 'ready'] as const;
export type OpenStage = (typeof OPEN_STAGES)[number];

export interface OpenProgress {
  readonly stage: OpenStage;
  /** The same in a few words for a person; it names no path. */
  readonly doing: string;
  /** Bytes, where they can be told. */
  readonly done?: number;
  readonly total?: number;
}

/** Where an index and its query encoder lie. */
export interface IndexTarget {
  readonly folder: string;
  /** Folder or name of the query encoder; default: what the index's manifest remembers. */
  readonly model?: string | undefined;
}

export type OpenIndex = (
  name: string,
  target: IndexTarget,
  report: (progress: OpenProgress) => void,
) => Promise<Retriever>;

/** A retriever for the length of one request. It stays open, whatever replaces it, until it is released. */
export interface Lease {
  readonly retriever: Retriever;
  release(): void;
}

/** The query that an index answers before it counts as ready: it goes through encoder, engine and passages. */
const FIRST_QUERY = 'the first query';

/**
 * One index of a server under its name, over time. A reload opens the new index and its encoder beside the old, lets it
 * answer a query, and puts it in the old one's place in one step; the old one is closed when its last request has ended.
 */
export class IndexSlot {
  readonly name: string;
  readonly #open: OpenIndex | undefined;
  #target: IndexTarget | undefined;
  readonly #modelAtStart: string | undefined;
  #current: Shared | undefined;
  /** Replaced, with requests that still use them. */
  readonly #draining = new Set<Shared>();
  /** What those that were replaced and closed have counted. */
  #past = NO_STATISTICS;
  #progress: OpenProgress = { stage: 'waiting', doing: 'waiting for its turn' };
  #turn: Promise<unknown> = Promise.resolve();
  #stopping = false;
  #closed = false;

  constructor(name: string, target?: IndexTarget, open?: OpenIndex) {
    this.name = name;
    this.#target = target;
    this.#modelAtStart = target?.model;
    this.#open = open;
  }

  get retriever(): Retriever | undefined {
    return this.#current?.retriever;
  }

  /** Of the first opening, or of the reload under way; `ready` when neither is. */
  get progress(): OpenProgress {
    return this.#progress;
  }

  /** Generations that were replaced and still have requests. */
  get draining(): number {
    return this.#draining.size;
  }

  /** What waits in all generations that are open, and what all there were have counted: counts never fall. */
  get statistics(): RetrieverStatistics | undefined {
    if (this.#current === undefined) return undefined;
    return [...this.#draining]
      .map(({ retriever }) => withoutBounds(retriever.statistics()))
      .reduce(sumOf, sumOf(this.#past, this.#current.retriever.statistics()));
  }

  report(progress: OpenProgress): void {
    this.#progress = progress;
  }

  lease(): Lease | undefined {
    return this.#current?.lease();
  }

  /** Takes a retriever that is open already. */
  set(retriever: Retriever): void {
    const old = this.#current;
    this.#current = new Shared(retriever);
    this.#progress = { stage: 'ready', doing: 'ready' };
    if (old !== undefined) this.#retire(old);
  }

  /**
   * Opens the index, for the first time or anew, and resolves when requests go to it. Calls come one after another. Where
   * it fails, what was there before goes on unchanged.
   *
   * @throws what opening threw; NOT_READY where the server stopped before it began, or was closed meanwhile.
   */
  load(change: Partial<IndexTarget> = {}): Promise<Retriever> {
    const loading = this.#turn.then(() => this.#load(change));
    this.#turn = loading.catch(() => undefined);
    return loading;
  }

  async #load(change: Partial<IndexTarget>): Promise<Retriever> {
    if (this.#open === undefined || this.#target === undefined) {
      throw new TrawlError('NOT_SUPPORTED', `The index ${this.name} was handed over open; there is nothing to load.`);
    }
    if (this.#stopping) throw stopping();
    const target = { ...this.#target, ...this.#modelFor(change), ...change };
    let opened: Retriever | undefined;
    try {
      opened = await this.#open(this.name, target, (progress) => this.report(progress));
      this.report({ stage: 'warming', doing: 'answering a first query' });
      await answerOne(opened);
      if (this.#closed) throw stopping();
    } catch (error) {
      await opened?.close();
      if (this.#current !== undefined) this.#progress = { stage: 'ready', doing: 'ready' };
      throw error;
    }
    this.#target = target;
    this.set(opened);
    return opened;
  }

  /** The encoder of one folder says nothing of another's: with a new one it is again that of the start. */
  #modelFor({ folder }: Partial<IndexTarget>): { readonly model?: string | undefined } {
    return folder === undefined ? {} : { model: this.#modelAtStart };
  }

  /** A load under way goes on; those that wait for it, and later ones, are refused. */
  stop(): void {
    this.#stopping = true;
  }

  #retire(old: Shared): void {
    this.#draining.add(old);
    void old.retire().then(() => {
      this.#draining.delete(old);
      this.#past = sumOf(this.#past, countsOf(old.retriever.statistics()));
    });
  }

  /** Waits for a load under way and for all requests, then closes everything that was opened. */
  async close(): Promise<void> {
    this.stop();
    this.#closed = true;
    await this.#turn;
    await Promise.all([this.#current, ...this.#draining].map((each) => each?.retire()));
  }
}

function stopping(): TrawlError {
  return new TrawlError('NOT_READY', 'The server is stopping.');
}

/** A query that fails at the start would fail later: an index is not ready then. */
async function answerOne(retriever: Retriever): Promise<void> {
  const { outcomes } = await retriever.retrieve({ queries: [FIRST_QUERY], k: 1 });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
}

/** A retriever with the number of requests that use it. */
class Shared {
  readonly retriever: Retriever;
  #leases = 0;
  #lastEnded: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(retriever: Retriever) {
    this.retriever = retriever;
  }

  lease(): Lease {
    this.#leases++;
    let released = false;
    return {
      retriever: this.retriever,
      release: () => {
        if (released) return;
        released = true;
        this.#leases--;
        if (this.#leases === 0) this.#lastEnded?.();
      },
    };
  }

  /** Closes it when no request uses it any more. No lease is taken afterwards. */
  retire(): Promise<void> {
    this.#closing ??= new Promise<void>((resolve) => {
      if (this.#leases === 0) resolve();
      else this.#lastEnded = resolve;
    }).then(() => this.retriever.close());
    return this.#closing;
  }
}
