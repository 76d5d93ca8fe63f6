import { cancelled } from '../abort.ts';
import { TrawlError } from '../errors.ts';
import type { Metric } from '../metric.ts';
import { checkSearchRequest } from '../vector-index/search-checks.ts';
import type { SearchLoad, SearchRequest, SearchResult, VectorIndex } from '../vector-index/vector-index.ts';
import { BatchSize } from './batch-size.ts';
import { type SearchPiece, WaitingSearch } from './waiting-search.ts';

/** Searches of up to so many hits share a batch, and those of up to four times as many the next kind, and so on. */
const LEAST_CLASS = 16;
/** As long as more are coming, a batch waits for so many queries, */
const WORTH_A_PASS = 32;
/** but no longer than this, in milliseconds. */
const PATIENCE_MS = 25;

export interface QueuedIndexOptions {
  /**
   * Whether more queries may come soon, whatever this index does: texts wait for the encoder. A pass over the codes costs
   * nearly as much for a few queries as for 30, and the encoder needs the processor too.
   */
  readonly moreAreComing?: () => boolean;
}

/**
 * A queue in front of an engine. While a batch runs the next gathers: queries of all that wait, the same share of each, so
 * that a call of thousands is cut up and a lone query is in the next batch. Nothing waits for company that may not come: a
 * search that finds the engine idle begins when those that were asked for in the same turn of the event loop are there, and
 * only where `moreAreComing` does it wait for them a little.
 *
 * A batch is searched for the most hits that any of it wants and cut for the others: an exact top-k begins with the exact
 * top of any smaller k, so an answer has the bits it has alone.
 */
export class QueuedIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: Metric;
  readonly #engine: VectorIndex;
  readonly #moreAreComing: () => boolean;
  /** The first gives the next queries. */
  readonly #waiting: WaitingSearch[] = [];
  readonly #sizes = new Map<number, BatchSize>();
  readonly #idle: (() => void)[] = [];
  readonly #batchSizes: number[] = [];
  #running = false;
  #planned = false;
  #patience: NodeJS.Timeout | null = null;
  #closing: Promise<void> | undefined;
  #waitingQueries = 0;
  #queries = 0;
  #dropped = 0;
  #batches = 0;
  #rescored = 0;
  #fullScans = 0;

  constructor(engine: VectorIndex, { moreAreComing = () => false }: QueuedIndexOptions = {}) {
    this.dimension = engine.dimension;
    this.rows = engine.rows;
    this.metric = engine.metric;
    this.#engine = engine;
    this.#moreAreComing = moreAreComing;
  }

  get load(): SearchLoad {
    let expectedWaitMs = 0;
    for (const [kind, waiting] of this.#waitingByKind()) {
      expectedWaitMs += this.#sizes.get(kind)?.expectedMs(waiting) ?? 0;
    }
    return {
      waitingQueries: this.#waitingQueries,
      expectedWaitMs,
      queries: this.#queries,
      droppedQueries: this.#dropped,
      batches: this.#batches,
      batchSizes: [...this.#batchSizes],
      rescoredRows: this.#rescored,
      fullScans: this.#fullScans,
    };
  }

  async search(request: SearchRequest): Promise<SearchResult> {
    // What is wrong with a request has to be found before it is among others.
    checkSearchRequest(request, this.dimension);
    if (this.#closing !== undefined) throw new TrawlError('NOT_READY', 'The index is closed.');
    if (request.signal?.aborted === true) throw cancelled();
    if (request.count === 0) return this.#engine.search(request);
    const search = new WaitingSearch(request, kindOf(request.k), (queries) => {
      this.#waitingQueries -= queries;
      this.#dropped += queries;
    });
    this.#waiting.push(search);
    this.#waitingQueries += request.count;
    this.#plan();
    return search.result;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    // What waits for company waits no longer.
    this.#plan();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#running || this.#waitingQueries > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    await this.#engine.close();
  }

  /** Dispatches once all that this turn of the event loop brings has been asked for. */
  #plan(): void {
    if (this.#running || this.#planned) return;
    this.#planned = true;
    process.nextTick(() => {
      this.#planned = false;
      if (!this.#running) this.#dispatch();
    });
  }

  /** Whether a batch should wait for company; if so, it is looked at again when its patience ends. */
  #waits(): boolean {
    if (this.#patience !== null) clearTimeout(this.#patience);
    this.#patience = null;
    if (this.#waitingQueries === 0 || this.#closing !== undefined) return false;
    if (this.#waitingQueries >= WORTH_A_PASS || !this.#moreAreComing()) return false;
    let oldest = Number.POSITIVE_INFINITY;
    // Not the first: that may have come after one which had a part of its queries in another batch.
    for (const { hasWork, since } of this.#waiting) if (hasWork) oldest = Math.min(oldest, since);
    const left = oldest + PATIENCE_MS - performance.now();
    if (left <= 0) return false;
    this.#patience = setTimeout(() => this.#plan(), left);
    return true;
  }

  #dispatch(): void {
    if (this.#waits()) return;
    const batch = this.#gather();
    if (batch === null) {
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    this.#running = true;
    void this.#run(batch).finally(() => {
      this.#running = false;
      this.#dispatch();
    });
  }

  /** Queries of one kind, as many as make a batch, the same share of each search as long as there is room. */
  #gather(): readonly SearchPiece[] | null {
    while (this.#waiting[0]?.hasWork === false) this.#waiting.shift();
    const first = this.#waiting[0];
    if (first === undefined) return null;
    const fitting = this.#waiting.filter((search) => search.hasWork && search.goesWith(first));
    const size = this.#sizeOf(first.kind).queries;
    const pieces: SearchPiece[] = [];
    let left = size;
    for (let turn = fitting; turn.length > 0 && left > 0; turn = turn.filter((search) => search.hasWork)) {
      const share = Math.max(1, Math.floor(left / turn.length));
      for (const search of turn) {
        if (left === 0) break;
        const piece = search.take(Math.min(share, left));
        left -= piece.count;
        pieces.push(piece);
      }
    }
    this.#waitingQueries -= size - left;
    this.#moveBack(new Set(pieces.map(({ search }) => search)));
    return pieces;
  }

  /** Those that had their turn go behind those that had none. */
  #moveBack(served: ReadonlySet<WaitingSearch>): void {
    const waiting = this.#waiting.splice(0).filter((search) => search.hasWork);
    this.#waiting.push(...waiting.filter((search) => !served.has(search)));
    this.#waiting.push(...waiting.filter((search) => served.has(search)));
  }

  async #run(pieces: readonly SearchPiece[]): Promise<void> {
    const searches = new Set(pieces.map(({ search }) => search));
    const count = pieces.reduce((sum, piece) => sum + piece.count, 0);
    const k = Math.max(...[...searches].map((search) => search.k));
    const [{ search: first }] = pieces as readonly [SearchPiece];
    const controller = new AbortController();
    // A batch is given up when nobody waits for any of it.
    const stopWatching = [...searches].map((search) =>
      search.onGivenUp(() => {
        if ([...searches].every((each) => each.isSettled)) controller.abort();
      }),
    );
    const started = performance.now();
    try {
      const found = await this.#engine.search({
        queries: vectorsOf(pieces, count, this.dimension),
        count,
        k,
        ...(first.filter === undefined ? {} : { filter: first.filter }),
        signal: controller.signal,
      });
      this.#sizeOf(first.kind).observe(count, performance.now() - started);
      this.#countBatch(count, found);
      let at = 0;
      for (const piece of pieces) {
        piece.search.accept(piece, found, k, at);
        at += piece.count;
      }
    } catch (error) {
      // Which of several searches is at fault shows when each is run alone.
      if (searches.size > 1 && !controller.signal.aborted) await this.#runApart(pieces);
      else for (const search of searches) search.fail(error);
    } finally {
      for (const stop of stopWatching) stop();
    }
  }

  async #runApart(pieces: readonly SearchPiece[]): Promise<void> {
    const bySearch = new Map<WaitingSearch, SearchPiece[]>();
    for (const piece of pieces) bySearch.set(piece.search, [...(bySearch.get(piece.search) ?? []), piece]);
    for (const [search, own] of bySearch) if (!search.isSettled) await this.#run(own);
  }

  #countBatch(queries: number, { certificate }: SearchResult): void {
    this.#batches++;
    this.#queries += queries;
    const place = Math.floor(Math.log2(queries));
    while (this.#batchSizes.length <= place) this.#batchSizes.push(0);
    this.#batchSizes[place]!++;
    if (certificate === undefined) return;
    this.#fullScans += certificate.fullScans;
    for (const rows of certificate.rescored) this.#rescored += rows;
  }

  #sizeOf(kind: number): BatchSize {
    const known = this.#sizes.get(kind);
    if (known !== undefined) return known;
    const size = new BatchSize();
    this.#sizes.set(kind, size);
    return size;
  }

  #waitingByKind(): Map<number, number> {
    const waiting = new Map<number, number>();
    for (const { kind, remaining } of this.#waiting) waiting.set(kind, (waiting.get(kind) ?? 0) + remaining);
    return waiting;
  }
}

function kindOf(k: number): number {
  let kind = LEAST_CLASS;
  while (kind < k) kind *= 4;
  return kind;
}

/** The vectors of a batch one after another; those of one piece are not copied. */
function vectorsOf(pieces: readonly SearchPiece[], count: number, dimension: number): Float32Array {
  if (pieces.length === 1) return pieces[0]!.vectors(dimension);
  const vectors = new Float32Array(count * dimension);
  let at = 0;
  for (const piece of pieces) {
    vectors.set(piece.vectors(dimension), at * dimension);
    at += piece.count;
  }
  return vectors;
}
