import { TrawlError } from '../../base/errors.ts';
import { lengthOf } from '../../encoder/text-encoder.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { CutCall, CutResult } from '../calls/cut-call.ts';
import type { EmbedCall, EmbedResult } from '../calls/embed-call.ts';
import type { ExplainCall, ExplainResult } from '../calls/explain-call.ts';
import type { FindCall, FindResult } from '../calls/find-call.ts';
import type { NearestCall, NearestResult } from '../calls/nearest-call.ts';
import type { Hit } from '../calls/query-outcome.ts';
import type { RerankCall, RerankResult } from '../calls/rerank-call.ts';
import type { RetrieveCall, RetrieveQuery, RetrieveResult } from '../calls/retrieve-call.ts';
import type { ScoreCall, ScoreResult } from '../calls/score-call.ts';
import type { SelectCall } from '../calls/select-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import { inputOf, isEmbedded } from '../embedded-query.ts';
import { hybridBytes } from '../hybrid/hybrid-search.ts';
import type { Retriever } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { RetrieverStatistics } from '../retriever-statistics.ts';

export const DEFAULT_MAX_WAITING_BYTES = 512 * 1024 * 1024;

/** Estimated bytes of a waiting query, without its text and vector. */
const QUERY_BYTES = 512;
/** Bytes of a row number and a score. */
const HIT_BYTES = 16;
/** Assumed bytes of a passage before the first answer. */
const FIRST_PASSAGE_BYTES = 2_000;
/** Weight of the newest answer in the mean size of a passage. */
const WEIGHT_OF_NEWEST = 0.1;

/**
 * Refuses calls while the queries, vectors and expected answers of waiting calls exceed a limit in bytes. A call that the answer
 * cache can answer is never refused. The call that crosses the limit is accepted; otherwise a call larger than the limit could
 * never be answered.
 */
export class BoundedRetriever implements Retriever {
  readonly info: RetrieverInfo;
  readonly #inner: Retriever;
  readonly #maxBytes: number;
  #passageBytes = FIRST_PASSAGE_BYTES;
  #calls = 0;
  #bytes = 0;
  #refused = 0;

  constructor(inner: Retriever, maxBytes: number) {
    this.info = inner.info;
    this.#inner = inner;
    this.#maxBytes = maxBytes;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { queries } = call;
    const hits = queries.length * Math.min(Math.max(call.k, call.rerank?.depth ?? 0), this.info.rows);
    const bytes = this.#queriesBytes(queries) + hits * this.#passageBytes + hybridBytes(call);
    // Queries with vectors continue an accepted request.
    const isNew = !queries.every(isEmbedded);
    if (isNew && this.#isFull && !this.#inner.hasAnswers(call)) throw this.#refusal();
    const result = await this.#hold(bytes, () => this.#inner.retrieve(call));
    const [first] = result.outcomes;
    if (first?.ok === true) this.#observe(first.hits);
    return result;
  }

  hasAnswers(call: RetrieveCall): boolean {
    return this.#inner.hasAnswers(call);
  }

  explain(call: ExplainCall): Promise<ExplainResult> {
    return this.#inner.explain(call);
  }

  async score(call: ScoreCall): Promise<ScoreResult> {
    if (this.#isFull) throw this.#refusal();
    const rows = call.queries.reduce((sum, query) => sum + query.rows.length, 0);
    const results = call.queries.length * (rows + call.maxRank) * HIT_BYTES;
    const queries = this.#queriesBytes(call.queries.map(({ query }) => query));
    return this.#hold(queries + results, () => this.#inner.score(call));
  }

  async searchTree(call: TreeCall): Promise<TreeResult> {
    if (this.#isFull) throw this.#refusal();
    const result = await this.#hold(QUERY_BYTES + Math.min(call.size, this.info.rows) * this.#passageBytes, () =>
      this.#inner.searchTree(call),
    );
    this.#observe(result.hits);
    return result;
  }

  async select(call: SelectCall): Promise<RowBitmap> {
    if (this.#isFull) throw this.#refusal();
    return this.#hold(this.info.rows / 8, () => this.#inner.select(call));
  }

  async nearest(call: NearestCall): Promise<NearestResult> {
    if (this.#isFull) throw this.#refusal();
    const bytes = QUERY_BYTES + 4 * this.info.dimension + Math.min(call.k, this.info.rows) * HIT_BYTES;
    return this.#hold(bytes, () => this.#inner.nearest(call));
  }

  async embed(call: EmbedCall): Promise<EmbedResult> {
    if (this.#isFull) throw this.#refusal();
    return this.#hold(this.#queriesBytes(call.inputs), () => this.#inner.embed(call));
  }

  async rerank(call: RerankCall): Promise<RerankResult> {
    if (this.#isFull) throw this.#refusal();
    const characters = call.lists.reduce(
      (sum, { query, passages }) => passages.reduce((all, { length }) => all + length, sum + query.length),
      0,
    );
    return this.#hold(2 * characters, () => this.#inner.rerank(call));
  }

  async find(call: FindCall): Promise<FindResult> {
    if (this.#isFull) throw this.#refusal();
    const keys = call.keys.reduce((sum, key) => sum + 2 * key.length, 0);
    // Reserve for one passage per key, because most keys have at most one. The limit would be a poor estimate.
    return this.#hold(keys + call.keys.length * this.#passageBytes, () => this.#inner.find(call));
  }

  async cut(call: CutCall): Promise<CutResult> {
    if (this.#isFull) throw this.#refusal();
    const characters = call.texts.reduce((sum, { length }) => sum + length, 0);
    return this.#hold(2 * characters, () => this.#inner.cut(call));
  }

  get failure(): TrawlError | undefined {
    return this.#inner.failure;
  }

  statistics(): RetrieverStatistics {
    const waiting = { calls: this.#calls, bytes: this.#bytes, maxBytes: this.#maxBytes, refused: this.#refused };
    return { ...this.#inner.statistics(), waiting };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  get #isFull(): boolean {
    return this.#bytes >= this.#maxBytes;
  }

  #refusal(): TrawlError {
    this.#refused++;
    return new TrawlError(
      'OVERLOADED',
      `${this.#calls} waiting calls hold ${this.#bytes} bytes of queries and expected answers; the limit is ${this.#maxBytes}. Try again later.`,
      { details: { calls: this.#calls, bytes: this.#bytes } },
    );
  }

  async #hold<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    this.#calls++;
    this.#bytes += bytes;
    try {
      return await work();
    } finally {
      this.#calls--;
      this.#bytes -= bytes;
    }
  }

  #queriesBytes(queries: readonly RetrieveQuery[]): number {
    const each = QUERY_BYTES + 4 * this.info.dimension;
    return queries.reduce((sum, query) => sum + each + 2 * lengthOf(inputOf(query)), 0);
  }

  #observe(hits: readonly Hit[]): void {
    if (hits.length === 0) return;
    const mean = hits.reduce((sum, { document }) => sum + 2 * document.length, 0) / hits.length;
    this.#passageBytes = Math.round(this.#passageBytes + (mean - this.#passageBytes) * WEIGHT_OF_NEWEST);
  }
}
