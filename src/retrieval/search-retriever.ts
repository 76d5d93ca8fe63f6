import { throwIfCancelled } from '../abort.ts';
import { applyTemplate, composeText, type EncoderInput, type TextEncoder } from '../embedding/text-encoder.ts';
import { bug, TrawlError } from '../errors.ts';
import { type Bm25Ranking, DEFAULT_BM25, type FieldRanking } from '../lexical-index/bm25.ts';
import type { LexicalFields } from '../lexical-index/lexical-fields.ts';
import type { LexicalResult } from '../lexical-index/lexical-index.ts';
import type { QueryTemplate } from '../manifest/model-identity.ts';
import type { PassageStore } from '../passages/passage-store.ts';
import { RowBitmap } from '../row-bitmap.ts';
import { RunningCalls } from '../running-calls.ts';
import type { SearchResult } from '../vector-index/vector-index.ts';
import { RowScopes } from '../views/row-scopes.ts';
import { inputOf, isEmbedded, isText } from './embedded-query.ts';
import { explainWords } from './explain-words.ts';
import { hitRows } from './hit-rows.ts';
import { checkedSettings, fuseResults, groupsOf, hybridOutcomes } from './hybrid-search.ts';
import { searchByRow } from './lexical-hits.ts';
import { missingPart } from './mode-parts.ts';
import { type Documents, NO_DOCUMENTS } from './no-documents.ts';
import { OneAtATime } from './one-at-a-time.ts';
import { searchPyserini } from './pyserini-search.ts';
import { type EmbedOutcome, type QueryVectors, rowOf, usableQueries, wrongDimension } from './query-vectors.ts';
import type {
  CutCall,
  CutResult,
  EmbedCall,
  EmbedResult,
  ExplainCall,
  ExplainResult,
  FindCall,
  FindResult,
  Hit,
  LexicalLoad,
  NearestCall,
  NearestResult,
  QueryOutcome,
  RerankResult,
  RetrieveCall,
  RetrieveQuery,
  RetrieveResult,
  Retriever,
  RetrieverInfo,
  RetrieverStatistics,
  RowScope,
  ScoreCall,
  ScoreOutcome,
  ScoreResult,
  SearchMode,
  SelectCall,
  TreeCall,
  TreeResult,
} from './retriever.ts';
import type { RetrieverParts } from './retriever-parts.ts';
import { scoreRows } from './score-rows.ts';
import { searchTree } from './search-tree.ts';
import { searchWords } from './search-words.ts';
import { NO_STATISTICS } from './statistics-sum.ts';
import { Stopwatch } from './timings.ts';
import { treeRows } from './tree-rows.ts';

/** A call, and the rows of its scope. */
type FilteredCall = RetrieveCall & { readonly rows: RowBitmap | undefined };

/** A search for the k nearest rows of `count` vectors. */
interface NearestRows {
  readonly count: number;
  readonly k: number;
  readonly filter: RowBitmap | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Runs the stages of a call. In dense mode it embeds the queries and searches their vectors, in BM25 mode it searches their texts, in
 * hybrid mode it does both and fuses the lists; then it fetches the passages.
 */
export class SearchRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #dense: RetrieverParts['dense'];
  readonly #lexical: LexicalFields | undefined;
  readonly #fieldRanking: FieldRanking;
  readonly #passages: PassageStore;
  readonly #cutter: RetrieverParts['cutter'];
  readonly #filters: RetrieverParts['filters'];
  readonly #scopes: RowScopes;
  readonly #liveRows: RowBitmap | undefined;
  readonly #longTies = new OneAtATime();
  #lexicalLoad: LexicalLoad = NO_STATISTICS.lexical;
  readonly #calls = new RunningCalls('The index is being closed. Send the request again.');

  constructor(info: RetrieverInfo, parts: RetrieverParts) {
    const { dense, lexical, fieldRanking = {}, filters, views = new Map(), passages, cutter, liveRows } = parts;
    this.info = info;
    this.#scopes = new RowScopes({ index: info.index, columns: info.columns, filters, views });
    this.#dense = dense;
    this.#lexical = lexical;
    this.#fieldRanking = fieldRanking;
    this.#filters = filters;
    this.#passages = passages;
    this.#cutter = cutter;
    this.#liveRows = liveRows;
  }

  retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    return this.#calls.run(() => this.#retrieve(call));
  }

  hasAnswers({ queries }: RetrieveCall): boolean {
    return queries.length === 0;
  }

  explain(call: ExplainCall): Promise<ExplainResult> {
    return this.#calls.run(() => this.#explain(call));
  }

  score(call: ScoreCall): Promise<ScoreResult> {
    return this.#calls.run(() => this.#score(call));
  }

  searchTree(call: TreeCall): Promise<TreeResult> {
    return this.#calls.run(() => this.#searchTree(call));
  }

  select(call: SelectCall): Promise<RowBitmap> {
    return this.#calls.run(() => this.#select(call));
  }

  nearest(call: NearestCall): Promise<NearestResult> {
    return this.#calls.run(() => this.#nearest(call));
  }

  embed(call: EmbedCall): Promise<EmbedResult> {
    return this.#calls.run(() => this.#embed(call));
  }

  /** Reranking is the work of `RerankingRetriever`. */
  async rerank(): Promise<RerankResult> {
    throw rerankerMissing();
  }

  find(call: FindCall): Promise<FindResult> {
    return this.#calls.run(() => this.#find(call));
  }

  cut(call: CutCall): Promise<CutResult> {
    return this.#calls.run(() => this.#cut(call));
  }

  statistics(): RetrieverStatistics {
    return {
      ...NO_STATISTICS,
      encoder: this.#dense?.encoder.load ?? NO_STATISTICS.encoder,
      search: this.#dense?.index.load ?? NO_STATISTICS.search,
      lexical: this.#lexicalLoad,
      waiting: { ...NO_STATISTICS.waiting, calls: this.#calls.count },
    };
  }

  get failure(): TrawlError | undefined {
    return this.#dense?.encoder.failure ?? this.#passages.failure;
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#close());
  }

  async #close(): Promise<void> {
    const { encoder, index } = this.#dense ?? {};
    await Promise.all(
      [encoder, index, this.#lexical, this.#filters, this.#passages, this.#cutter].map((part) => part?.close()),
    );
  }

  async #retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, signal, mode = this.info.modes[0] } = call;
    // The engines allocate memory for k hits per query.
    const k = Math.min(call.k, Math.max(1, this.info.rows));
    throwIfCancelled(signal);
    if (call.rerank !== undefined) throw rerankerMissing();
    const watch = new Stopwatch();
    if (queries.length === 0) return { outcomes: [], timings: watch.timings };
    this.#requireParts(mode!);
    const scope = this.#rowsOf(call, watch);
    // A call without a filter joins the encoder's queue at once, where load shedding sees it.
    const rows = scope instanceof Promise ? await scope : scope;
    const limited = { ...call, k, rows };
    if (mode === 'hybrid') return this.#retrieveHybrid(limited, watch);
    return mode === 'bm25' ? this.#retrieveLexical(limited, watch) : this.#retrieveDense(limited, watch);
  }

  /** The rows of a scope, deleted ones included; undefined for all rows. */
  #rowsOf({ filter, views }: RowScope, watch: Stopwatch): RowBitmap | undefined | Promise<RowBitmap> {
    const rows = this.#scopes.rowsOf(filter, views);
    return rows instanceof Promise ? watch.time('search', () => rows) : rows;
  }

  async #retrieveLexical(call: FilteredCall, watch: Stopwatch): Promise<RetrieveResult> {
    const { k, bm25Order, signal } = call;
    const texts = call.queries.map((query) => this.#lexicalText(query, call.template));
    const search = (some: readonly string[], depth: number): Promise<LexicalResult> =>
      watch.time('search', () => this.#searchTexts(call, some, depth));
    const { rows } = this.info;
    const isPyserini = bm25Order === 'pyserini';
    const passages = isPyserini ? this.#passages : this.#documents(call);
    const request = { texts, k, rows, passages, longTies: this.#longTies, watch, signal };
    const found = isPyserini ? await searchPyserini(search, request) : await searchByRow(search, request);
    this.#countLexical(call, found);
    const outcomes = texts.map((text, q): QueryOutcome => {
      const hits = found.lists[q]!;
      if (hits instanceof TrawlError) return { ok: false, error: hits };
      return {
        ok: true,
        hits,
        tokens: found.terms[q]!,
        truncated: false,
        text,
        cut: 'nothing',
        vector: NO_VECTOR,
        certificate: { exact: true, rescored: null },
      };
    });
    return { outcomes, timings: watch.timings };
  }

  #searchTexts(call: FilteredCall, texts: readonly string[], k: number): Promise<LexicalResult> {
    const { bm25, rows: filter, signal } = call;
    const ranking = this.#ranking(bm25);
    return searchWords(this.#requireLexical(), { index: this.info.index, texts, k, ranking, filter, signal });
  }

  async #explain({ queries, bm25, template, signal, ...scope }: ExplainCall): Promise<ExplainResult> {
    const watch = new Stopwatch();
    const lexical = this.#requireLexical();
    const among = await this.#rowsOf(scope, watch);
    const wanted = queries.map(({ query, rows }) => ({
      text: this.#lexicalText(query, template),
      rows: rows.filter((row) => this.#isFound(row, among)),
    }));
    const found = await watch.time('search', () => explainWords(lexical, wanted, this.#ranking(bm25), signal));
    const explained = queries.map(({ rows }, q) => {
      let next = 0;
      return rows.map((row) => (this.#isFound(row, among) ? found[q]![next++]! : []));
    });
    return { explained, timings: watch.timings };
  }

  async #score(call: ScoreCall): Promise<ScoreResult> {
    const { queries, mode, maxRank, truncate, bm25, signal } = call;
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const inputs = queries.map(({ query }) => query);
    const among = await this.#rowsOf(call, watch);
    const wanted = { rows: queries.map(({ rows }) => rows), among, indexRows: Math.max(1, this.info.rows), maxRank };
    if (mode === 'bm25') {
      const lexical = this.#requireLexical();
      const search = {
        index: this.info.index,
        texts: inputs.map((input) => this.#lexicalText(input, undefined)),
        ranking: this.#ranking(bm25),
        signal,
      };
      const scores = await scoreRows(
        (k, filter) => watch.time('search', () => searchWords(lexical, { ...search, k, filter })),
        wanted,
      );
      return { outcomes: scores.map((each) => ({ ok: true, scores: each })), timings: watch.timings };
    }
    const { dimension } = this.#requireDense().index;
    const embedded = await this.#embedQueries(
      {
        queries: inputs,
        k: 1,
        ...(truncate === undefined ? {} : { truncate }),
        ...(signal === undefined ? {} : { signal }),
      },
      watch,
    );
    const { vectors, count } = usableQueries(embedded, dimension);
    const usable = wanted.rows.filter((_, i) => embedded.outcomes[i]!.ok);
    const scores = await scoreRows(
      async (k, filter) => {
        const found = await watch.time('search', () => this.#searchIndex(vectors, { count, k, filter, signal }));
        watch.waited('search', found.waitedMs);
        return found;
      },
      { ...wanted, rows: usable },
    );
    let next = 0;
    const outcomes = embedded.outcomes.map(
      (outcome): ScoreOutcome =>
        outcome.ok ? { ok: true, scores: scores[next++]! } : { ok: false, error: outcome.error },
    );
    return { outcomes, timings: watch.timings };
  }

  async #searchTree(call: TreeCall): Promise<TreeResult> {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const lexical = this.#requireLexical();
    const filter = await this.#rowsOf(call, watch);
    const parts = { info: this.info, lexical, columns: this.#filters, filter, passages: this.#passages, watch };
    const { load, ...found } = await searchTree(call, parts);
    this.#addLexicalLoad(load);
    return { ...found, timings: watch.timings };
  }

  async #select({ ids, query, signal, ...scope }: SelectCall): Promise<RowBitmap> {
    throwIfCancelled(signal);
    const { rows } = this.info;
    const among = await this.#rowsOf(scope, new Stopwatch());
    const selected = new RowBitmap(rows);
    if (ids === undefined) {
      const found = query === undefined ? selected.complement() : await treeRows(query, this.#requireLexical(), signal);
      return [among, this.#liveRows].reduce<RowBitmap>(
        (kept, set) => (set === undefined ? kept : kept.intersection(set)),
        found,
      );
    }
    const found = await this.#passages.find('id', ids, rows, signal);
    for (const row of found.flat()) if (this.#isFound(row, among)) selected.add(row);
    return selected;
  }

  async #nearest({ vector, k, rows, signal, ...scope }: NearestCall): Promise<NearestResult> {
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    this.#requireDense();
    const passing = await this.#rowsOf(scope, watch);
    const allowed = passing === undefined ? rows : rows === undefined ? passing : rows.intersection(passing);
    const most = Math.min(k, Math.max(1, this.info.rows));
    const found = await watch.time('search', () =>
      this.#searchIndex(vector, { count: 1, k: most, filter: allowed, signal }),
    );
    watch.waited('search', found.waitedMs);
    const nearest = Array.from({ length: found.counts[0]! }, (_, i) => ({
      row: found.rows[i]!,
      score: found.scores[i]!,
    }));
    return { nearest, timings: watch.timings };
  }

  /** Whether a row is live and in the rows of a scope. */
  #isFound(row: number, among: RowBitmap | undefined): boolean {
    return this.#liveRows?.has(row) !== false && among?.has(row) !== false;
  }

  #ranking(bm25: Bm25Ranking | undefined): Bm25Ranking {
    return { ...DEFAULT_BM25, ...parametersOf(this.info), ...this.#fieldRanking, ...bm25 };
  }

  /** @throws TrawlError NOT_SUPPORTED if the mode needs a part that is not open. */
  #requireParts(mode: SearchMode): void {
    const open = { vectors: this.#dense !== undefined, words: this.#lexical !== undefined };
    const missing = missingPart(mode, open, this.info.index);
    if (missing !== undefined) throw missing;
  }

  #requireLexical(mode: SearchMode = 'bm25'): LexicalFields {
    this.#requireParts(mode);
    return this.#lexical!;
  }

  /** Counts a query once, also if later calls continue its search; the postings of each search are work and are added. */
  #countLexical(
    { queries }: RetrieveCall,
    { postings, postingsRead }: Pick<LexicalResult, 'postings' | 'postingsRead'>,
  ): void {
    const texts = queries.filter(isText).length;
    this.#addLexicalLoad({ queries: texts, postings: sum(postings), postingsRead: sum(postingsRead) });
  }

  #addLexicalLoad({ queries, postings, postingsRead }: LexicalLoad): void {
    const before = this.#lexicalLoad;
    this.#lexicalLoad = {
      queries: before.queries + queries,
      postings: before.postings + postings,
      postingsRead: before.postingsRead + postingsRead,
    };
  }

  async #retrieveDense(call: FilteredCall, watch: Stopwatch): Promise<RetrieveResult> {
    const { k, signal } = call;
    const embedded = await this.#embedQueries(call, watch);
    const found = await watch.time('search', () => this.#searchVectors(call, embedded, k));
    watch.waited('search', found.waitedMs);
    const rows = hitRows(found, k);
    const documents = await watch.time('fetch', () => this.#documents(call).getMany(rows, signal));
    const { dimension } = this.#requireDense().index;
    return { outcomes: denseOutcomes(embedded, dimension, found, k, documents), timings: watch.timings };
  }

  #documents({ documents = true }: RetrieveCall): Documents {
    return documents ? this.#passages : NO_DOCUMENTS;
  }

  /** Searches the vectors of the embedded queries; the result does not count the failed ones. */
  async #searchVectors(call: FilteredCall, embedded: QueryVectors, k: number): Promise<SearchResult> {
    const { rows: filter, signal } = call;
    const { vectors, count } = usableQueries(embedded, this.#requireDense().index.dimension);
    return this.#searchIndex(vectors, { count, k, filter, signal });
  }

  /** The k nearest rows of each vector, with the proof that they are. */
  async #searchIndex(queries: Float32Array, { count, k, filter, signal }: NearestRows): Promise<SearchResult> {
    const found = await this.#requireDense().index.search({
      queries,
      count,
      k,
      ...(filter === undefined ? {} : { filter }),
      ...(signal === undefined ? {} : { signal }),
    });
    if (!found.exact) throw bug('the engine returned an answer without proof of exactness');
    return found;
  }

  /**
   * Hybrid search, in groups of queries that limit the memory of their lists. The words of a group are searched while its queries are
   * embedded and their vectors searched.
   */
  async #retrieveHybrid(call: FilteredCall, watch: Stopwatch): Promise<RetrieveResult> {
    const settings = checkedSettings(call.hybrid);
    const { signal } = call;
    const depth = Math.min(settings.depth, Math.max(1, this.info.rows));
    const outcomes: QueryOutcome[] = [];
    for (const queries of groupsOf(call.queries, depth)) {
      const group = { ...call, queries };
      const texts = queries.map((query) => this.#lexicalText(query, call.template));
      const searching = this.#searchTexts(group, texts, depth);
      // The encoder's error, if any, rejects the call; this one must not be unhandled then.
      searching.catch(() => undefined);
      const embedded = await this.#embedQueries(group, watch);
      const [near, words] = await watch.time('search', () =>
        Promise.all([this.#searchVectors(group, embedded, depth), searching]),
      );
      watch.waited('search', near.waitedMs);
      this.#countLexical(group, words);
      const fused = await watch.time('search', () => fuseResults({ near, words, embedded, depth }, settings, call));
      const rows = fused.flatMap((list) => list.rows.map(({ row }) => row));
      const documents = await watch.time('fetch', () => this.#documents(call).getMany(rows, signal));
      const { dimension } = this.#requireDense().index;
      outcomes.push(...hybridOutcomes({ fused, embedded, near, depth, dimension }, documents));
    }
    return { outcomes, timings: watch.timings };
  }

  /** Embeds the queries that have no vector yet, and returns the vectors of all queries. */
  async #embedQueries({ queries, template, truncate, signal }: RetrieveCall, watch: Stopwatch): Promise<QueryVectors> {
    const { index, encoder } = this.#requireDense();
    const { dimension } = index;
    const inputs = queries.filter(isText).map((query) => this.#templated(query, template));
    const encoded =
      inputs.length === 0
        ? { vectors: new Float32Array(0), outcomes: [], waitedMs: 0 }
        : await watch.time('embed', () =>
            encoder.encode(inputs, {
              inputType: 'query',
              ...(truncate === undefined ? {} : { truncate }),
              ...(signal === undefined ? {} : { signal }),
            }),
          );
    watch.waited('embed', encoded.waitedMs);
    const outcomes = encoded.outcomes.map((outcome, i) => ({ ...outcome, text: this.#textOf(inputs[i]!, encoder) }));
    if (inputs.length === queries.length) return { vectors: encoded.vectors, outcomes };
    const vectors = new Float32Array(queries.length * dimension);
    let next = 0;
    const all = queries.map((query, i): EmbedOutcome => {
      if (!isEmbedded(query)) {
        vectors.set(rowOf(encoded.vectors, next, dimension), i * dimension);
        return outcomes[next++]!;
      }
      if (query.vector.length !== dimension) throw wrongDimension(query.vector.length, dimension);
      vectors.set(query.vector, i * dimension);
      return { ok: true, ...query.embedding };
    });
    return { vectors, outcomes: all };
  }

  /** The parts of a query that the template of the call or of the index has. */
  #templated(query: EncoderInput, template: QueryTemplate | undefined): EncoderInput {
    return applyTemplate(query, template ?? this.info.model?.queryTemplate);
  }

  /** The text whose words BM25 searches: the parts of the query. */
  #lexicalText(query: RetrieveQuery, template: QueryTemplate | undefined): string {
    return composeText(this.#templated(inputOf(query), template), '', null);
  }

  #textOf(query: EncoderInput, { separator }: TextEncoder): string {
    return composeText(query, this.info.model?.prefixes.query ?? '', separator);
  }

  #requireDense(): NonNullable<RetrieverParts['dense']> {
    this.#requireParts('dense');
    return this.#dense!;
  }

  async #embed({ inputs: given, inputType, template, truncate, signal }: EmbedCall): Promise<EmbedResult> {
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const { encoder } = this.#requireDense();
    const inputs = given.map((input) => this.#templated(input, template));
    const { vectors, outcomes, waitedMs } = await watch.time('embed', () =>
      encoder.encode(inputs, {
        inputType,
        ...(truncate === undefined ? {} : { truncate }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    watch.waited('embed', waitedMs);
    return { vectors, outcomes, timings: watch.timings };
  }

  async #find(call: FindCall): Promise<FindResult> {
    const { signal } = call;
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const among = await this.#rowsOf(call, watch);
    const rowsByKey = await watch.time('search', () => this.#findRows(call, among));
    const documents = await watch.time('fetch', () => this.#passages.getMany(rowsByKey.flat(), signal));
    let next = 0;
    const found = rowsByKey.map((rows) => rows.map((row) => ({ row, document: documents[next++]! })));
    return { found, timings: watch.timings };
  }

  async #cut({ texts, tokens, signal }: CutCall): Promise<CutResult> {
    throwIfCancelled(signal);
    if (this.#cutter === undefined) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `Index ${this.info.index} has no model, so texts cannot be cut by its tokens. Name a tokenizer with --cut-tokenizer, or cut by words.`,
      );
    }
    const watch = new Stopwatch();
    const cuts = await watch.time('fetch', () => this.#cutter!.cut(texts, tokens, signal));
    return { texts: cuts, timings: watch.timings };
  }

  /** The row that `key` is the number of, unless the index has no such row or a call does not find it. */
  #rowOfKey(key: string, among: RowBitmap | undefined): number[] {
    const row = /^\d{1,15}$/.test(key) ? Number(key) : Number.POSITIVE_INFINITY;
    return row < this.info.rows && this.#isFound(row, among) ? [row] : [];
  }

  /**
   * The first `limit` rows of each key that are live and among the rows of the scope. The passage file also has the others, so a key
   * that got too few is looked up again with four times the limit.
   */
  async #findRows({ by, keys, limit, signal }: FindCall, among: RowBitmap | undefined): Promise<number[][]> {
    if (by === 'row') return keys.map((key) => this.#rowOfKey(key, among));
    if (this.#liveRows === undefined && among === undefined) return this.#passages.find(by, keys, limit, signal);
    const found: number[][] = keys.map(() => []);
    let open = keys.map((_, i) => i);
    for (let wanted = limit; open.length > 0; wanted *= 4) {
      const rows = await this.#passages.find(
        by,
        open.map((i) => keys[i]!),
        wanted,
        signal,
      );
      open = open.filter((i, at) => {
        found[i] = rows[at]!.filter((row) => this.#isFound(row, among)).slice(0, limit);
        return found[i].length < limit && rows[at]!.length === wanted;
      });
    }
    return found;
  }
}

/** The vector of a query in BM25 search. */
const NO_VECTOR = new Float32Array(0);

function parametersOf({ bm25 }: RetrieverInfo): { k1: number; b: number } | undefined {
  return bm25 === null ? undefined : { k1: bm25.k1, b: bm25.b };
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

/** The error for reranking without a reranker. */
function rerankerMissing(): TrawlError {
  return new TrawlError(
    'NOT_SUPPORTED',
    'There is no reranker, so hits cannot be reranked. Start with --rerank MODEL, or leave out reranking.',
  );
}

function denseOutcomes(
  embedded: QueryVectors,
  dimension: number,
  found: SearchResult,
  k: number,
  documents: readonly string[],
): QueryOutcome[] {
  let q = 0;
  let nextDocument = 0;
  return embedded.outcomes.map((outcome, i): QueryOutcome => {
    if (!outcome.ok) return { ok: false, error: outcome.error };
    const hits: Hit[] = [];
    for (let at = q * k; at < q * k + found.counts[q]!; at++) {
      // Adding 0 turns −0, to which a tiny negative score rounds, into 0.
      const score = Math.fround(found.scores[at]!) + 0;
      hits.push({ row: found.rows[at]!, score, document: documents[nextDocument++]! });
    }
    const certificate = { exact: true, rescored: found.certificate?.rescored[q] ?? null } as const;
    q++;
    const { tokens, truncated, text, cut } = outcome;
    const vector = rowOf(embedded.vectors, i, dimension);
    return { ok: true, hits, tokens, truncated, text, cut, vector, certificate };
  });
}
