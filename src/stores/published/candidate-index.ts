import { throwIfCancelled } from '../../base/abort.ts';
import { RunningCalls } from '../../base/running-calls.ts';
import type { Metric } from '../../engine/metric.ts';
import { RowBitmap } from '../../engine/row-bitmap.ts';
import { type Score, scoreFunction } from '../../engine/vectors/score.ts';
import { checkFilter, checkSearchRequest, withoutOverflows } from '../../engine/vectors/search-checks.ts';
import {
  NO_SEARCH_LOAD,
  type SearchRequest,
  type SearchResult,
  type VectorIndex,
} from '../../engine/vectors/vector-index.ts';
import {
  type CandidateSource,
  MAX_CANDIDATES,
  MAX_NAMED_ROWS,
  type RowCondition,
  type StoreFilters,
} from './candidate-source.ts';
import { answerZero, type QuerySearch, querySearch, type ScoredVectors } from './query-search.ts';
import { allowedCondition, rowsOf } from './row-condition.ts';
import { filterOf, halves, type RowPart, rangeOf } from './row-parts.ts';
import { foreignFilter, foreignRow, incomplete, tooManySearches } from './store-errors.ts';

/** Candidates beyond k of the first search. More are seldom needed: few neighbouring scores differ by less than the error bound. */
const MARGIN = 32;
/** Each further search of the same rows asks for this many times as many candidates. */
const WIDENING = 8;
/** Values of the vectors of one message: 8 MiB; the limit of a message is 64 MiB. */
const VALUES_A_CALL = 2 ** 21;
/** Hits of all queries of one search, which bounds its reply. */
const HITS_A_SEARCH = 2 ** 18;
/**
 * The most searches for one query. More would be needed only if millions of rows were as near as the k-th, or were nearer but did not
 * pass the filter.
 */
const MAX_SEARCHES = 1_000;

interface CandidateIndexFacts extends ScoredVectors {
  readonly rows: number;
  /** The rows that are in the collection; undefined for all. */
  readonly liveRows: RowBitmap | undefined;
  /** Whether the first pass scores every row (in Milvus, a FLAT index). If not, nothing is proved, and replies say so. */
  readonly scoresEveryRow: boolean;
  /** Filters that the store can evaluate, and counts the rows of; absent: none. */
  readonly pushed?: StoreFilters;
}

/** A part and the value of its last candidate. */
interface SearchedPart {
  readonly part: RowPart;
  readonly last: number;
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

  /** @param end closes what the source needs. */
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
    checkSearchRequest(request, this.dimension);
    checkFilter(request, this.rows);
    const { count, k, signal } = request;
    throwIfCancelled(signal);
    const allowed = this.#allowed(request.filter);
    const whole: RowPart = { first: 0, end: this.rows, live: this.#liveCount, allowed: this.#countOf(allowed) };
    const pushed = request.filter === undefined ? undefined : this.#facts.pushed?.expressionOf(request.filter);
    const searches = Array.from({ length: count }, (_, q) => querySearch(request, q, this.#facts, { allowed, pushed }));
    const isScoredHere = whole.allowed <= k;
    // Counted once for each filter: a row that the store wrongly lets pass is noticed in the hits, one that it wrongly leaves out is not.
    if (!isScoredHere && pushed !== undefined && !this.#agreed.has(request.filter!)) {
      const found = await this.#source.count!(filterOf(whole, pushed), signal);
      if (found !== whole.allowed) throw foreignFilter(this.#facts.scores.store, found, whole.allowed);
      this.#agreed.add(request.filter!);
    }
    if (whole.allowed > 0) {
      const others = searches.filter((search) => !answerZero(search, this.metric, whole.allowed));
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
    return withoutOverflows({
      counts,
      rows,
      scores,
      exact: this.#facts.scoresEveryRow || isScoredHere,
      certificate: {
        rescored: Float64Array.from(searches, ({ proof }) => proof.rescored),
        fullScans: 0,
      },
      waitedMs: 0,
    });
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
    const rows = rowsOf({ first: 0, end: this.rows }, allowed);
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
    const { proof } = searches[0]!;
    const named = this.#named(whole, searches[0]!);
    const limit = this.#firstLimit(whole, proof.k, named);
    const perSearch = Math.max(1, Math.min(Math.floor(HITS_A_SEARCH / limit), this.#vectorsAtOnce));
    for (let first = 0; first < searches.length; first += perSearch) {
      const some = searches.slice(first, first + perSearch);
      const last = await this.#ask(some, whole, { limit, named, signal });
      await this.#rescore(some, signal);
      for (const [i, search] of some.entries()) {
        if (!this.#isDone(search, whole, last[i]!)) await this.#widen(search, { whole, limit, signal });
      }
    }
  }

  /** Searches all rows with more and more candidates, then parts of them. */
  async #widen(
    search: QuerySearch,
    { whole, limit: asked, signal }: { whole: RowPart; limit: number; signal: AbortSignal | undefined },
  ): Promise<void> {
    const named = this.#named(whole, search);
    const most = Math.min(MAX_CANDIDATES, named?.among ?? whole.live);
    let last = Number.POSITIVE_INFINITY;
    for (let limit = asked; limit < most; ) {
      limit = Math.min(most, limit * WIDENING);
      last = (await this.#ask([search], whole, { limit, named, signal }))[0]!;
      await this.#rescore([search], signal);
      if (this.#isDone(search, whole, last)) return;
    }
    await this.#searchParts(search, { part: whole, last }, signal);
  }

  /**
   * Halves the part whose further rows may be the best, until no part has rows that matter. Every half is searched with all candidates
   * that the store returns, so that a filter that passes few of them needs few halves.
   */
  async #searchParts(search: QuerySearch, whole: SearchedPart, signal: AbortSignal | undefined): Promise<void> {
    const open = [whole];
    for (;;) {
      open.sort((a, b) => a.last - b.last);
      const next = open.pop();
      // What was found in other parts since may exclude the rest of this one, and so of all others.
      if (next === undefined || this.#isDone(search, next.part, next.last)) return;
      for (const part of halves(next.part, { live: this.#live, allowed: search.allowed })) {
        if (part.allowed === 0) continue;
        const named = this.#named(part, search);
        const limit = Math.min(MAX_CANDIDATES, named?.among ?? part.live);
        const [last] = await this.#ask([search], part, { limit, named, signal });
        await this.#rescore([search], signal);
        if (!this.#isDone(search, part, last!)) open.push({ part, last: last! });
      }
    }
  }

  /** Whether the k best of a part are among its candidates, whose last has the value `last`; −∞ if there are no others. */
  #isDone({ proof }: QuerySearch, part: RowPart, last: number): boolean {
    if (last === Number.NEGATIVE_INFINITY || proof.excludes(last)) return true;
    return !this.#facts.scoresEveryRow && proof.found >= Math.min(proof.k, part.allowed);
  }

  /**
   * Asks the store and adds the candidates. Returns the value of each query's last one; −∞ if all rows of the part were returned.
   *
   * @throws TrawlError STORE_DIFFERS for a candidate that is not a row of the part: the collection is not what was published.
   */
  async #ask(
    searches: readonly QuerySearch[],
    part: RowPart,
    { limit, named, signal }: { limit: number; named: Named | undefined; signal: AbortSignal | undefined },
  ): Promise<number[]> {
    const { dimension } = this;
    const queries = new Float32Array(searches.length * dimension);
    for (const [i, search] of searches.entries()) {
      queries.set(search.sent, i * dimension);
      if (++search.searches > MAX_SEARCHES) throw tooManySearches(this.#facts.scores.store, MAX_SEARCHES);
    }
    const among = named?.among ?? part.live;
    const found = await this.#source.search(queries, {
      count: searches.length,
      // One more than there are, to notice a row too many.
      limit: Math.min(MAX_CANDIDATES, limit === among ? among + 1 : limit),
      among,
      condition: named?.condition ?? rangeOf(part, this.rows),
      signal,
    });
    const { store } = this.#facts.scores;
    return searches.map(({ proof, allowed, valueScale }, i) => {
      const candidates = found[i]!;
      for (const row of candidates.rows) {
        if (!this.#belongs(row, part) || (named !== undefined && !allowed.has(row))) throw foreignRow(store, row);
      }
      const expected = Math.min(limit, among);
      const got = new Set(candidates.rows).size;
      if (this.#facts.scoresEveryRow && got !== expected) throw incomplete(store, got, expected);
      if (candidates.total !== undefined && candidates.total !== among)
        throw incomplete(store, candidates.total, among);
      const values = valueScale === 1 ? candidates.values : candidates.values.map((value) => value * valueScale);
      proof.add({ rows: candidates.rows, values }, (row) => allowed.has(row));
      // An approximate index may return fewer, however many are asked for.
      return got >= among || got < expected ? Number.NEGATIVE_INFINITY : least(values);
    });
  }

  #belongs(row: number, { first, end }: RowPart): boolean {
    return Number.isInteger(row) && row >= first && row < end && this.#live.has(row);
  }

  /** Fetches and scores the candidates that may be in the results, for all queries together. */
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

  /**
   * The allowed rows of a part: by the expression of the filter, by name where few of them are allowed or few are not, or as a set;
   * undefined where the store searches them all.
   */
  #named(part: RowPart, { allowed, pushed }: QuerySearch): Named | undefined {
    if (part.allowed === part.live) return undefined;
    if (pushed !== undefined) return { condition: filterOf(part, pushed), among: part.allowed };
    const isWhole = part.first === 0 && part.end === this.rows;
    const { first, end, live: liveCount, allowed: allowedCount } = part;
    const condition = allowedCondition(
      { first, end, isWhole, allowed, liveCount, allowedCount, live: this.#live },
      this.#source.takesBitmaps,
    );
    return condition && { condition, among: part.allowed };
  }

  #firstLimit(part: RowPart, k: number, named: Named | undefined): number {
    const among = named?.among ?? part.live;
    // Of all candidates only a share is allowed; half as many more, because it varies.
    const factor = named !== undefined || part.allowed === part.live ? 1 : (1.5 * part.live) / part.allowed;
    return Math.min(among, MAX_CANDIDATES, Math.ceil((k + MARGIN) * factor));
  }
}

interface Named {
  readonly condition: RowCondition;
  /** Rows that fulfil the condition. */
  readonly among: number;
}

function least(values: Float64Array): number {
  let found = Number.POSITIVE_INFINITY;
  for (const value of values) found = Math.min(found, value);
  return found;
}
