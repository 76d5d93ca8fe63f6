import { throwIfCancelled } from '../base/abort.ts';
import { TrawlError } from '../base/errors.ts';
import type { TokenCutter } from '../encoder/cutting/token-cutter.ts';
import type { TextEncoder } from '../encoder/text-encoder.ts';
import type { FilterCache } from '../engine/columns/filter-cache.ts';
import type { FieldRanking } from '../engine/lexical/bm25.ts';
import type { LexicalFields } from '../engine/lexical/lexical-index.ts';
import { RowBitmap } from '../engine/row-bitmap.ts';
import { checkScoresFit } from '../engine/vectors/search-checks.ts';
import type { VectorIndex } from '../engine/vectors/vector-index.ts';
import type { PassageStore } from '../index/passages/passage-store.ts';
import type { QueryOutcome } from './calls/query-outcome.ts';
import type { RetrieveCall, RetrieveResult, RowScope, ScopedCall } from './calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from './calls/tree-call.ts';
import { DenseSearch } from './dense/dense-search.ts';
import { retrieveHybrid } from './hybrid/hybrid-search.ts';
import { LexicalSearch } from './lexical/lexical-search.ts';
import type {
  CutCall,
  EmbedCall,
  ExplainCall,
  FindCall,
  NearestCall,
  PassageLookup,
  ScoreCall,
  Search,
  SelectCall,
} from './retriever.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import { NO_STATISTICS, type RetrieverStatistics } from './retriever-statistics.ts';
import { foundFor, NO_DOCUMENTS } from './rows/hit-rows.ts';
import { findRows, scoreVectors, scoreWords, selectRows } from './rows/lookup-rows.ts';
import { RowScopes } from './rows/row-scopes.ts';
import { missingPart, type SearchMode } from './search-mode.ts';
import { Stopwatch } from './timings.ts';
import { searchTree } from './trees/search-tree.ts';

/** The most excluded rows for which lists are made longer. More of them are excluded by a bitmap, which costs a search of its own. */
const MAX_EXCLUDED_FROM_LISTS = 512;

/** The parts of a retriever. The retriever closes them. */
export interface RetrieverParts {
  /** Absent if only BM25 is served. */
  readonly dense?: { readonly encoder: TextEncoder; readonly index: VectorIndex };
  /** Absent if only dense search is served. */
  readonly lexical?: LexicalFields;
  /** Weights of the fields and tie breaker of the BM25 searches that set none. */
  readonly fieldRanking?: FieldRanking;
  /** Absent if the index has no columns. */
  readonly filters?: FilterCache;
  /** The rows of each view by its name; absent if there are none. */
  readonly views?: ReadonlyMap<string, RowBitmap>;
  readonly passages: PassageStore;
  /** Absent if the index has no model and no tokenizer was named. */
  readonly cutter?: TokenCutter;
  /** Rows that are not deleted; absent if no row is deleted. */
  readonly liveRows?: RowBitmap;
}

/**
 * Runs the stages of a call. In dense mode it embeds the queries and searches their vectors, in BM25 mode it searches their texts, in
 * hybrid mode it does both and fuses the lists; then it fetches the passages.
 */
export class IndexSearch implements Search, PassageLookup {
  readonly #info: RetrieverInfo;
  readonly #parts: RetrieverParts;
  readonly #dense: DenseSearch | undefined;
  readonly #lexical: LexicalSearch | undefined;
  readonly #scopes: RowScopes;

  constructor(info: RetrieverInfo, parts: RetrieverParts) {
    const { dense, lexical, fieldRanking, filters, views = new Map(), liveRows } = parts;
    const { index, columns, model } = info;
    this.#info = info;
    this.#parts = parts;
    this.#dense = dense && new DenseSearch(dense, model);
    this.#lexical = lexical && new LexicalSearch(lexical, info, fieldRanking);
    this.#scopes = new RowScopes({ index, columns, filters, views, liveRows });
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, signal, mode = this.#info.modes[0]! } = call;
    // The engines allocate memory for k hits per query.
    const k = Math.min(call.k, Math.max(1, this.#info.rows));
    throwIfCancelled(signal);
    if (call.rerank !== undefined) throw rerankerMissing();
    const watch = new Stopwatch();
    if (queries.length === 0) return { outcomes: [], timings: watch.timings };
    this.#requireParts(mode);
    const scope = this.#rowsInScope(call, watch);
    // Without a filter nothing is awaited here: the call joins the encoder's queue at once, where admission sees it.
    const rows = scope instanceof Promise ? await scope : scope;
    const scoped = call.exclude?.length
      ? await this.#excluding(call.exclude, rows, call, watch)
      : { rows, excluded: new Set<number>() };
    const outcomes = await this.#outcomes(mode, { ...call, k, ...scoped }, watch);
    return { outcomes, timings: watch.timings };
  }

  /** Few excluded rows are taken from longer lists, since only searches with the same bitmap share a batch. */
  async #excluding(
    ids: readonly string[],
    rows: RowBitmap | undefined,
    { signal }: RetrieveCall,
    watch: Stopwatch,
  ): Promise<Pick<ScopedCall, 'rows' | 'excluded'>> {
    const { passages } = this.#parts;
    const found = await watch.time('search', () => passages.find('id', ids, Math.max(1, this.#info.rows), signal));
    const excluded = new Set(found.flat());
    if (excluded.size <= MAX_EXCLUDED_FROM_LISTS) return { rows, excluded };
    const listed = new RowBitmap(this.#info.rows);
    for (const row of excluded) listed.add(row);
    const others = listed.complement();
    return { rows: rows === undefined ? others : rows.intersection(others), excluded: new Set() };
  }

  #outcomes(mode: SearchMode, call: ScopedCall, watch: Stopwatch): Promise<QueryOutcome[]> {
    const ordersById = mode === 'bm25' && call.bm25Order === 'pyserini';
    const passages = call.documents === false && !ordersById ? NO_DOCUMENTS : this.#parts.passages;
    if (mode === 'dense') return this.#requireDense().retrieve(call, passages, watch);
    const { rows } = this.#info;
    const lexical = this.#requireLexical();
    if (mode === 'bm25') return lexical.retrieve(call, passages, rows, watch);
    return retrieveHybrid(call, { dense: this.#requireDense(), lexical, passages, rows }, watch);
  }

  async searchTree(call: TreeCall): Promise<TreeResult> {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const lexical = this.#requireLexical();
    const { filters: columns, passages } = this.#parts;
    const filter = await this.#rowsInScope(call, watch);
    const parts = { info: this.#info, lexical: lexical.fields, columns, filter, passages, watch };
    const { load, ...found } = await searchTree(call, parts);
    lexical.add(load);
    return { ...found, timings: watch.timings };
  }

  async find(call: FindCall) {
    const { signal } = call;
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const among = await this.#rowsInScope(call, watch);
    const rowsByKey = await watch.time('search', () => findRows(call, among, this.#lookup));
    const documents = await watch.time('fetch', () => this.#parts.passages.getMany(rowsByKey.flat(), signal));
    let next = 0;
    const found = rowsByKey.map((rows) => rows.map((row) => ({ row, document: documents[next++]! })));
    return { found, timings: watch.timings };
  }

  async select(call: SelectCall): Promise<RowBitmap> {
    throwIfCancelled(call.signal);
    const among = await this.#rowsInScope(call, new Stopwatch());
    return selectRows(call, among, { ...this.#lookup, fields: () => this.#requireLexical().fields });
  }

  async score(call: ScoreCall) {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const rows = { among: await this.#rowsInScope(call, watch), indexRows: Math.max(1, this.#info.rows) };
    const outcomes =
      call.mode === 'bm25'
        ? await scoreWords(call, { ...rows, lexical: this.#requireLexical() }, watch)
        : await scoreVectors(call, { ...rows, dense: this.#requireDense() }, watch);
    return { outcomes, timings: watch.timings };
  }

  async explain({ queries, bm25, template, signal, ...scope }: ExplainCall) {
    const watch = new Stopwatch();
    const lexical = this.#requireLexical();
    const among = await this.#rowsInScope(scope, watch);
    const isFound = (row: number): boolean => this.#scopes.isFound(row, among);
    const texts = queries.map(({ query, rows }) => ({
      text: lexical.queryText(query, template),
      rows: rows.filter(isFound),
    }));
    const terms = await watch.time('search', () => lexical.explain(texts, bm25, signal));
    const explained = queries.map(({ rows }, q) => {
      let next = 0;
      return rows.map((row) => (isFound(row) ? terms[q]![next++]! : []));
    });
    return { explained, timings: watch.timings };
  }

  async nearest({ vector, k, rows, signal, ...scope }: NearestCall) {
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const { index } = this.#requireDense();
    const passing = await this.#rowsInScope(scope, watch);
    const filter = passing === undefined ? rows : rows === undefined ? passing : rows.intersection(passing);
    const most = Math.min(k, Math.max(1, this.#info.rows));
    const request = { queries: vector, count: 1, k: most, filter, signal };
    const found = foundFor(checkScoresFit(await watch.timeQueued('search', () => index.search(request))), 0);
    const nearest = Array.from(found.rows, (row, i) => ({ row, score: found.scores[i]! }));
    return { nearest, timings: watch.timings };
  }

  async embed(call: EmbedCall) {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const { vectors, outcomes } = await this.#requireDense().embed(call, watch);
    return { vectors, outcomes, timings: watch.timings };
  }

  async cut({ texts, tokens, signal }: CutCall) {
    throwIfCancelled(signal);
    const { cutter } = this.#parts;
    if (cutter === undefined) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `Index ${this.#info.index} has no model of its own here, so texts cannot be cut by its tokens. Name a tokenizer with --cut-tokenizer, or cut by words.`,
      );
    }
    const watch = new Stopwatch();
    const cuts = await watch.time('fetch', () => cutter.cut(texts, tokens, signal));
    return { texts: cuts, timings: watch.timings };
  }

  /** The queues of encoder and engine, and the counts of BM25. */
  get load(): Pick<RetrieverStatistics, 'encoder' | 'search' | 'lexical'> {
    return {
      encoder: this.#parts.dense?.encoder.load ?? NO_STATISTICS.encoder,
      search: this.#parts.dense?.index.load ?? NO_STATISTICS.search,
      lexical: this.#lexical?.load ?? NO_STATISTICS.lexical,
    };
  }

  get failure(): TrawlError | undefined {
    return this.#parts.dense?.encoder.failure ?? this.#parts.passages.failure;
  }

  async close(): Promise<void> {
    const { dense, lexical, filters, passages, cutter } = this.#parts;
    await Promise.all([dense?.encoder, dense?.index, lexical, filters, passages, cutter].map((part) => part?.close()));
  }

  get #lookup() {
    return { passages: this.#parts.passages, rows: this.#scopes, indexRows: this.#info.rows };
  }

  #rowsInScope(scope: RowScope, watch: Stopwatch): RowBitmap | undefined | Promise<RowBitmap> {
    const rows = this.#scopes.rowsInScope(scope);
    return rows instanceof Promise ? watch.time('search', () => rows) : rows;
  }

  /** @throws TrawlError NOT_SUPPORTED if the mode needs a part that is not open. */
  #requireParts(mode: SearchMode): void {
    const open = { vectors: this.#dense !== undefined, words: this.#lexical !== undefined };
    const missing = missingPart(mode, open, this.#info.index);
    if (missing !== undefined) throw missing;
  }

  #requireLexical(): LexicalSearch {
    this.#requireParts('bm25');
    return this.#lexical!;
  }

  #requireDense(): DenseSearch {
    this.#requireParts('dense');
    return this.#dense!;
  }
}

/** The error for reranking without a reranker. */
export function rerankerMissing(): TrawlError {
  return new TrawlError(
    'NOT_SUPPORTED',
    'There is no reranker, so hits cannot be reranked. Start with --rerank MODEL, or leave out reranking.',
  );
}
