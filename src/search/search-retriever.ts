import { throwIfCancelled } from '../base/abort.ts';
import { TrawlError } from '../base/errors.ts';
import { RunningCalls } from '../base/running-calls.ts';
import type { RowBitmap } from '../engine/row-bitmap.ts';
import type { PassageStore } from '../index/passages/passage-store.ts';
import { RowScopes } from '../index/views/row-scopes.ts';
import type { CutCall, CutResult } from './calls/cut-call.ts';
import type { EmbedCall, EmbedResult } from './calls/embed-call.ts';
import type { ExplainCall, ExplainResult } from './calls/explain-call.ts';
import type { FindCall, FindResult } from './calls/find-call.ts';
import type { NearestCall, NearestResult } from './calls/nearest-call.ts';
import type { QueryOutcome } from './calls/query-outcome.ts';
import type { RerankResult } from './calls/rerank-call.ts';
import type { RetrieveCall, RetrieveResult } from './calls/retrieve-call.ts';
import type { ScoreCall, ScoreResult } from './calls/score-call.ts';
import type { SelectCall } from './calls/select-call.ts';
import type { TreeCall, TreeResult } from './calls/tree-call.ts';
import { DenseSearch } from './dense/dense-search.ts';
import { retrieveDense } from './dense/retrieve-dense.ts';
import { retrieveHybrid } from './hybrid/retrieve-hybrid.ts';
import { explainWords } from './lexical/explain-words.ts';
import { LexicalSearch } from './lexical/lexical-search.ts';
import { retrieveLexical } from './lexical/retrieve-lexical.ts';
import { missingPart } from './mode-parts.ts';
import { type Documents, NO_DOCUMENTS } from './no-documents.ts';
import { OneAtATime } from './one-at-a-time.ts';
import type { Retriever } from './retriever.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import type { RetrieverParts } from './retriever-parts.ts';
import type { RetrieverStatistics } from './retriever-statistics.ts';
import { CallRows } from './rows/call-rows.ts';
import { findRows } from './rows/find-rows.ts';
import { scoreVectors, scoreWords } from './rows/score-passages.ts';
import { selectRows } from './rows/select-rows.ts';
import type { ScopedCall } from './scoped-call.ts';
import type { SearchMode } from './search-mode.ts';
import { NO_STATISTICS } from './statistics-sum.ts';
import { Stopwatch } from './timings.ts';
import { searchTree } from './trees/search-tree.ts';

/**
 * Runs the stages of a call. In dense mode it embeds the queries and searches their vectors, in BM25 mode it searches their texts, in
 * hybrid mode it does both and fuses the lists; then it fetches the passages.
 */
export class SearchRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #parts: RetrieverParts;
  readonly #dense: DenseSearch | undefined;
  readonly #lexical: LexicalSearch | undefined;
  readonly #rows: CallRows;
  readonly #longTies = new OneAtATime();
  readonly #calls = new RunningCalls('The index is being closed. Send the request again.');

  constructor(info: RetrieverInfo, parts: RetrieverParts) {
    const { dense, lexical, fieldRanking, filters, views = new Map(), liveRows } = parts;
    const { index, columns, model } = info;
    this.info = info;
    this.#parts = parts;
    this.#dense = dense && new DenseSearch(dense, model);
    this.#lexical = lexical && new LexicalSearch(lexical, info, fieldRanking);
    this.#rows = new CallRows(new RowScopes({ index, columns, filters, views }), liveRows);
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
      encoder: this.#parts.dense?.encoder.load ?? NO_STATISTICS.encoder,
      search: this.#parts.dense?.index.load ?? NO_STATISTICS.search,
      lexical: this.#lexical?.load ?? NO_STATISTICS.lexical,
      waiting: { ...NO_STATISTICS.waiting, calls: this.#calls.count },
    };
  }

  get failure(): TrawlError | undefined {
    return this.#parts.dense?.encoder.failure ?? this.#passages.failure;
  }

  close(): Promise<void> {
    return this.#calls.close(() => this.#close());
  }

  async #close(): Promise<void> {
    const { dense, lexical, filters, passages, cutter } = this.#parts;
    await Promise.all([dense?.encoder, dense?.index, lexical, filters, passages, cutter].map((part) => part?.close()));
  }

  async #retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries, signal, mode = this.info.modes[0]! } = call;
    // The engines allocate memory for k hits per query.
    const k = Math.min(call.k, Math.max(1, this.info.rows));
    throwIfCancelled(signal);
    if (call.rerank !== undefined) throw rerankerMissing();
    const watch = new Stopwatch();
    if (queries.length === 0) return { outcomes: [], timings: watch.timings };
    this.#requireParts(mode);
    const scope = this.#rows.of(call, watch);
    // A call without a filter joins the encoder's queue at once, where load shedding sees it.
    const rows = scope instanceof Promise ? await scope : scope;
    const outcomes = await this.#outcomes(mode, { ...call, k, rows }, watch);
    return { outcomes, timings: watch.timings };
  }

  #outcomes(mode: SearchMode, call: ScopedCall, watch: Stopwatch): Promise<QueryOutcome[]> {
    const passages = this.#documentsFor(call, mode);
    if (mode === 'dense') return retrieveDense(call, { dense: this.#requireDense(), passages }, watch);
    const { rows } = this.info;
    const lexical = this.#requireLexical();
    return mode === 'bm25'
      ? retrieveLexical(call, { lexical, passages, rows, longTies: this.#longTies }, watch)
      : retrieveHybrid(call, { dense: this.#requireDense(), lexical, passages, rows }, watch);
  }

  async #explain({ queries, bm25, template, signal, ...scope }: ExplainCall): Promise<ExplainResult> {
    const watch = new Stopwatch();
    const lexical = this.#requireLexical();
    const among = await this.#rows.of(scope, watch);
    const wanted = queries.map(({ query, rows }) => ({
      text: lexical.textOf(query, template),
      rows: rows.filter((row) => this.#rows.isFound(row, among)),
    }));
    const ranking = lexical.rankingOf(bm25);
    const found = await watch.time('search', () => explainWords(lexical.fields, wanted, ranking, signal));
    const explained = queries.map(({ rows }, q) => {
      let next = 0;
      return rows.map((row) => (this.#rows.isFound(row, among) ? found[q]![next++]! : []));
    });
    return { explained, timings: watch.timings };
  }

  async #score(call: ScoreCall): Promise<ScoreResult> {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const among = await this.#rows.of(call, watch);
    const rows = { among, indexRows: Math.max(1, this.info.rows) };
    const outcomes =
      call.mode === 'bm25'
        ? await scoreWords(call, { ...rows, lexical: this.#requireLexical() }, watch)
        : await scoreVectors(call, { ...rows, dense: this.#requireDense() }, watch);
    return { outcomes, timings: watch.timings };
  }

  async #searchTree(call: TreeCall): Promise<TreeResult> {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const lexical = this.#requireLexical();
    const filter = await this.#rows.of(call, watch);
    const { load, ...found } = await searchTree(call, {
      info: this.info,
      lexical: lexical.fields,
      columns: this.#parts.filters,
      filter,
      passages: this.#passages,
      watch,
    });
    lexical.add(load);
    return { ...found, timings: watch.timings };
  }

  async #select(call: SelectCall): Promise<RowBitmap> {
    throwIfCancelled(call.signal);
    const among = await this.#rows.of(call, new Stopwatch());
    return selectRows(call, among, { ...this.#lookup, fields: () => this.#requireLexical().fields });
  }

  async #nearest({ vector, k, rows, signal, ...scope }: NearestCall): Promise<NearestResult> {
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const dense = this.#requireDense();
    const passing = await this.#rows.of(scope, watch);
    const filter = passing === undefined ? rows : rows === undefined ? passing : rows.intersection(passing);
    const most = Math.min(k, Math.max(1, this.info.rows));
    const found = await watch.timeQueued('search', () => dense.nearest(vector, 1, { k: most, filter, signal }));
    const nearest = Array.from({ length: found.counts[0]! }, (_, i) => ({
      row: found.rows[i]!,
      score: found.scores[i]!,
    }));
    return { nearest, timings: watch.timings };
  }

  async #embed(call: EmbedCall): Promise<EmbedResult> {
    throwIfCancelled(call.signal);
    const watch = new Stopwatch();
    const { vectors, outcomes } = await this.#requireDense().embed(call, watch);
    return { vectors, outcomes, timings: watch.timings };
  }

  async #find(call: FindCall): Promise<FindResult> {
    const { signal } = call;
    throwIfCancelled(signal);
    const watch = new Stopwatch();
    const among = await this.#rows.of(call, watch);
    const rowsByKey = await watch.time('search', () => findRows(call, among, this.#lookup));
    const documents = await watch.time('fetch', () => this.#passages.getMany(rowsByKey.flat(), signal));
    let next = 0;
    const found = rowsByKey.map((rows) => rows.map((row) => ({ row, document: documents[next++]! })));
    return { found, timings: watch.timings };
  }

  async #cut({ texts, tokens, signal }: CutCall): Promise<CutResult> {
    throwIfCancelled(signal);
    const { cutter } = this.#parts;
    if (cutter === undefined) {
      throw new TrawlError(
        'NOT_SUPPORTED',
        `Index ${this.info.index} has no model of its own here, so texts cannot be cut by its tokens. Name a tokenizer with --cut-tokenizer, or cut by words.`,
      );
    }
    const watch = new Stopwatch();
    const cuts = await watch.time('fetch', () => cutter.cut(texts, tokens, signal));
    return { texts: cuts, timings: watch.timings };
  }

  #documentsFor({ documents = true, bm25Order }: RetrieveCall, mode: SearchMode): Documents {
    const ordersById = mode === 'bm25' && bm25Order === 'pyserini';
    return documents || ordersById ? this.#passages : NO_DOCUMENTS;
  }

  get #passages(): PassageStore {
    return this.#parts.passages;
  }

  get #lookup(): { passages: PassageStore; rows: CallRows; indexRows: number } {
    return { passages: this.#passages, rows: this.#rows, indexRows: this.info.rows };
  }

  /** @throws TrawlError NOT_SUPPORTED if the mode needs a part that is not open. */
  #requireParts(mode: SearchMode): void {
    const open = { vectors: this.#dense !== undefined, words: this.#lexical !== undefined };
    const missing = missingPart(mode, open, this.info.index);
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
function rerankerMissing(): TrawlError {
  return new TrawlError(
    'NOT_SUPPORTED',
    'There is no reranker, so hits cannot be reranked. Start with --rerank MODEL, or leave out reranking.',
  );
}
