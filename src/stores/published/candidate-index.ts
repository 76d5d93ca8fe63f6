import { throwIfCancelled } from '../../base/abort.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Metric } from '../../engine/metric.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import { type Score, scoreFunction } from '../../engine/vectors/score.ts';
import { checkSearchRequest, withoutOverflows } from '../../engine/vectors/search-checks.ts';
import {
  NO_SEARCH_LOAD,
  type SearchRequest,
  type SearchResult,
  type VectorIndex,
} from '../../engine/vectors/vector-index.ts';
import {
  allowedCondition,
  type CandidateSource,
  MAX_CANDIDATES,
  MAX_NAMED_ROWS,
  type RowCondition,
  type RowPart,
  rowsInRange,
  type StoreFilters,
} from './candidate-source.ts';
import { answerZero, type QuerySearch, querySearch, type ScoredVectors } from './query-search.ts';
import { foreignFilter, foreignRow, incomplete, tooManySearches } from './store-errors.ts';

/** Candidates beyond k of the first search. More are seldom needed: few neighbouring scores differ by less than the error bound. */
const MARGIN = 32;
/** Each further search of the same rows asks for this many times as many candidates. */
const WIDENING = 8;
/** Values of the vectors of one message: 8 MiB; the limit of a message is 64 MiB. */
const VALUES_A_CALL = 2 ** 21;
/** Hits of all queries of one search, which bounds its reply. */
const HITS_A_SEARCH = 2 ** 18;
/** The most searches for one query: more are needed only if millions of rows are as near as the k-th, or nearer and filtered out. */
const MAX_SEARCHES = 1_000;

interface CandidateIndexFacts extends ScoredVectors {
  readonly rows: number;
  readonly liveRows: RowBitmap | undefined;
  /** Whether the first pass scores every row (in Milvus, a FLAT index). If not, nothing is proved, and replies say so. */
  readonly scoresEveryRow: boolean;
  /** Filters that the store can evaluate, and whose rows it counts; absent: none. */
  readonly pushed?: StoreFilters;
}

/** The rows of a part that the store is asked to search. */
interface AskedRows {
  readonly part: RowPart;
  readonly condition: RowCondition;
  /** The number of rows that meet the condition: the allowed rows, or all live ones if a condition cannot name the allowed ones. */
  readonly among: number;
}

/**
 * Search of the vectors in a store. The store ranks candidates by its own scores. Their vectors are scored here as by every engine, and
 * the list is proved by the distance of the k-th score to the last candidate (docs/cluster.md). If that does not prove it, the search asks
 * for more candidates, then divides the rows until it does.
 */
export class CandidateIndex implements VectorIndex {
  readonly dimension: number;
  readonly rows: number;
  readonly metric: Metric;
  readonly residentBytes = 0;
  readonly touchedBytes = 0;
  readonly mappedBytes = 0;
  readonly load = NO_SEARCH_LOAD;
  readonly #source: CandidateSource;
  readonly #facts: CandidateIndexFacts;
  readonly #live: RowBitmap;
  readonly #liveCount: number;
  readonly #counts = new WeakMap<RowBitmap, number>();
  /** Filters for which the store counted as many rows as Trawl. */
  readonly #agreed = new WeakSet<RowBitmap>();
  readonly #score: Score;
  readonly #end: () => Promise<void>;
  readonly #calls = new RunningCalls('The index is closed.');

  constructor(source: CandidateSource, facts: CandidateIndexFacts, end: () => Promise<void> = async () => undefined) {
    this.dimension = facts.dimension;
    this.rows = facts.rows;
    this.metric = facts.metric;
    this.#source = source;
    this.#facts = facts;
    this.#live = facts.liveRows ?? new RowBitmap(facts.rows).complement();
    this.#liveCount = this.#live.count();
    this.#score = scoreFunction(facts.metric, facts.dimension);
    this.#end = end;
  }

  search(request: SearchRequest): Promise<SearchResult> {
    return this.#calls.run(() => this.#search(request));
  }

  close(): Promise<void> {
    return this.#calls.close(this.#end);
  }

  async #search(request: SearchRequest): Promise<SearchResult> {
    checkSearchRequest(request, this);
    const { count, k, signal } = request;
    throwIfCancelled(signal);
    const allowed = this.#allowed(request.filter);
    const whole: RowPart = { first: 0, end: this.rows, live: this.#liveCount, allowed: this.#countOf(allowed) };
    const pushed = request.filter === undefined ? undefined : this.#facts.pushed?.expressionOf(request.filter);
    const searches = Array.from({ length: count }, (_, q) => querySearch(request, q, this.#facts, { allowed, pushed }));
    const isScoredHere = whole.allowed <= k;
    // Counted once for each filter: a row that the store wrongly lets pass is noticed in the hits, one that it wrongly leaves out is not.
    if (!isScoredHere && pushed !== undefined && !this.#agreed.has(request.filter!)) {
      const found = await this.#source.count!({ type: 'filter', expression: pushed, first: 0, end: this.rows }, signal);
      if (found !== whole.allowed) throw foreignFilter(this.#facts.scores.store, found, whole.allowed);
      this.#agreed.add(request.filter!);
    }
    if (whole.allowed > 0) {
      const others = searches.filter((search) => !answerZero(search, this.metric));
      if (isScoredHere) await this.#scoreAll(others, allowed, signal);
      else await this.#searchWhole(others, whole, signal);
    }
    const counts = new Uint32Array(count);
    const rows = new Float64Array(count * k).fill(-1);
    const scores = new Float64Array(count * k);
    for (const [q, { proof }] of searches.entries()) {
      const best = proof.sorted();
      counts[q] = best.rows.length;
      rows.set(best.rows, q * k);
      scores.set(best.scores, q * k);
    }
    const exact = this.#facts.scoresEveryRow || isScoredHere;
    const rescored = Float64Array.from(searches, ({ proof }) => proof.rescored);
    return withoutOverflows({ counts, rows, scores, exact, certificate: { rescored, fullScans: 0 }, waitedMs: 0 });
  }

  /** Vectors of one call, sent or fetched. */
  get #vectorsAtOnce(): number {
    return Math.max(1, Math.min(MAX_NAMED_ROWS, Math.floor(VALUES_A_CALL / this.dimension)));
  }

  /** Scores all rows that may be returned, without asking for candidates: exact with any index of the store, and one call fewer. */
  async #scoreAll(
    searches: readonly QuerySearch[],
    allowed: RowBitmap,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (searches.length === 0) return;
    const { dimension } = this;
    const rows = rowsInRange(0, this.rows, allowed);
    for (let at = 0; at < rows.length; at += this.#vectorsAtOnce) {
      throwIfCancelled(signal);
      const some = rows.slice(at, at + this.#vectorsAtOnce);
      const vectors = await this.#source.vectors(some, signal);
      const found = { rows: Float64Array.from(some), values: new Float64Array(some.length) };
      for (const { query, proof } of searches) {
        proof.add(found, () => true);
        proof.accept(some.map((_, i) => this.#score(query, 0, vectors, i * dimension)));
      }
    }
  }

  #allowed(filter: RowBitmap | undefined): RowBitmap {
    if (filter === undefined) return this.#live;
    return this.#facts.liveRows === undefined ? filter : filter.intersection(this.#live);
  }

  /** The counts are kept because a filter's bitmap is used for many searches. */
  #countOf(rows: RowBitmap): number {
    const known = this.#counts.get(rows);
    if (known !== undefined) return known;
    const count = rows.count();
    this.#counts.set(rows, count);
    return count;
  }

  /** Searches all rows for all queries at once, then widens each query that this does not prove. */
  async #searchWhole(searches: readonly QuerySearch[], whole: RowPart, signal: AbortSignal | undefined): Promise<void> {
    if (searches.length === 0) return;
    const asked = this.#askedRows(whole, searches[0]!);
    // If the store searches all live rows, only a share of the candidates is allowed. Half as many more, because the share varies.
    const factor = asked.among === whole.allowed ? 1 : (1.5 * asked.among) / whole.allowed;
    const limit = Math.min(asked.among, MAX_CANDIDATES, Math.ceil((searches[0]!.proof.k + MARGIN) * factor));
    const perSearch = Math.max(1, Math.min(Math.floor(HITS_A_SEARCH / limit), this.#vectorsAtOnce));
    for (let first = 0; first < searches.length; first += perSearch) {
      const some = searches.slice(first, first + perSearch);
      const last = await this.#ask(some, asked, limit, signal);
      for (const [i, search] of some.entries()) {
        if (!this.#isDone(search, whole, last[i]!)) await this.#widen(search, asked, limit, signal);
      }
    }
  }

  /** Searches all rows with more and more candidates than the `limit` of the first search, then parts of them. */
  async #widen(search: QuerySearch, asked: AskedRows, limit: number, signal: AbortSignal | undefined): Promise<void> {
    const most = Math.min(MAX_CANDIDATES, asked.among);
    let last = Number.POSITIVE_INFINITY;
    for (let wider = limit; wider < most; ) {
      wider = Math.min(most, wider * WIDENING);
      last = (await this.#ask([search], asked, wider, signal))[0]!;
      if (this.#isDone(search, asked.part, last)) return;
    }
    // Halves the part whose further rows may be the best, until no part has rows that matter. Every half is searched with all candidates
    // that the store returns, so that a filter that passes few of them needs few halves.
    const open = [{ part: asked.part, last }];
    for (;;) {
      open.sort((a, b) => a.last - b.last);
      const next = open.pop();
      // Rows that other parts returned since may exclude the rest of this part, and so of all others.
      if (next === undefined || this.#isDone(search, next.part, next.last)) return;
      const { first, end } = next.part;
      const middle = Math.floor((first + end) / 2);
      for (const part of [this.#part(first, middle, search.allowed), this.#part(middle, end, search.allowed)]) {
        if (part.allowed === 0) continue;
        const half = this.#askedRows(part, search);
        const [least] = await this.#ask([search], half, Math.min(MAX_CANDIDATES, half.among), signal);
        if (!this.#isDone(search, part, least!)) open.push({ part, last: least! });
      }
    }
  }

  #part(first: number, end: number, allowed: RowBitmap): RowPart {
    return { first, end, live: this.#live.countIn(first, end), allowed: allowed.countIn(first, end) };
  }

  /** Whether the k best of a part are among its candidates. `last` is the value of the last one; −∞ if the part has no other rows. */
  #isDone({ proof }: QuerySearch, part: RowPart, last: number): boolean {
    if (last === Number.NEGATIVE_INFINITY || proof.excludes(last)) return true;
    return !this.#facts.scoresEveryRow && proof.found >= Math.min(proof.k, part.allowed);
  }

  /**
   * Asks the store, and scores the candidates that may be in the results. Returns the value of each query's last candidate; −∞ if all
   * rows of the part were returned.
   *
   * @throws TrawlError STORE_DIFFERS for a candidate that is not a row of the part: the collection is not what was published.
   */
  async #ask(
    searches: readonly QuerySearch[],
    { part, condition, among }: AskedRows,
    limit: number,
    signal: AbortSignal | undefined,
  ): Promise<number[]> {
    const { dimension } = this;
    const queries = new Float32Array(searches.length * dimension);
    for (const [i, search] of searches.entries()) {
      queries.set(search.sent, i * dimension);
      if (++search.searches > MAX_SEARCHES) throw tooManySearches(this.#facts.scores.store, MAX_SEARCHES);
    }
    const found = await this.#source.search(queries, {
      count: searches.length,
      // One more than there are, to notice a row too many.
      limit: Math.min(MAX_CANDIDATES, limit === among ? among + 1 : limit),
      among,
      condition,
      signal,
    });
    const { store } = this.#facts.scores;
    const last = searches.map(({ proof, allowed, valueScale }, i) => {
      const candidates = found[i]!;
      const expectedRows = among === part.allowed ? allowed : this.#live;
      for (const row of candidates.rows) {
        const isInPart = Number.isInteger(row) && row >= part.first && row < part.end;
        if (!isInPart || !expectedRows.has(row)) throw foreignRow(store, row);
      }
      const expected = Math.min(limit, among);
      const got = new Set(candidates.rows).size;
      if (this.#facts.scoresEveryRow && got !== expected) throw incomplete(store, got, expected);
      if (candidates.total !== undefined && candidates.total !== among)
        throw incomplete(store, candidates.total, among);
      const values = valueScale === 1 ? candidates.values : candidates.values.map((value) => value * valueScale);
      proof.add({ rows: candidates.rows, values }, (row) => allowed.has(row));
      // An approximate index may return fewer, however many are asked for.
      return got >= among || got < expected
        ? Number.NEGATIVE_INFINITY
        : values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
    });
    await this.#rescore(searches, signal);
    return last;
  }

  async #rescore(searches: readonly QuerySearch[], signal: AbortSignal | undefined): Promise<void> {
    const { dimension } = this;
    for (;;) {
      // There are at most as many searches as vectors of one call, so the rows of all searches fit into one call.
      const perQuery = Math.max(1, Math.floor(this.#vectorsAtOnce / searches.length));
      const wanted = searches.map(({ proof }) => proof.wanted(perQuery));
      const rows = [...new Set(wanted.flat())];
      if (rows.length === 0) return;
      throwIfCancelled(signal);
      const places = new Map(rows.map((row, i) => [row, i]));
      const vectors = await this.#source.vectors(rows, signal);
      for (const [i, { query, proof }] of searches.entries()) {
        proof.accept(wanted[i]!.map((row) => this.#score(query, 0, vectors, places.get(row)! * dimension)));
      }
    }
  }

  /** The allowed rows of a part, by the expression of the filter, by name or as a set; all its live rows if that is not possible. */
  #askedRows(part: RowPart, { allowed, pushed }: QuerySearch): AskedRows {
    const { first, end } = part;
    if (part.allowed < part.live) {
      const condition: RowCondition | undefined =
        pushed === undefined
          ? allowedCondition(part, { allowed, live: this.#live }, this.#source.takesBitmaps)
          : { type: 'filter', expression: pushed, first, end };
      if (condition !== undefined) return { part, condition, among: part.allowed };
    }
    const isWhole = first === 0 && end === this.rows;
    return { part, condition: isWhole ? { type: 'all' } : { type: 'range', first, end }, among: part.live };
  }
}
