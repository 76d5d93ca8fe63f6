import type { TrawlError } from '../base/errors.ts';
import type { RowBitmap } from '../engine/row-bitmap.ts';
import type { CutCall, CutResult } from './calls/cut-call.ts';
import type { EmbedCall, EmbedResult } from './calls/embed-call.ts';
import type { ExplainCall, ExplainResult } from './calls/explain-call.ts';
import type { FindCall, FindResult } from './calls/find-call.ts';
import type { NearestCall, NearestResult } from './calls/nearest-call.ts';
import type { RerankCall, RerankResult } from './calls/rerank-call.ts';
import type { RetrieveCall, RetrieveResult } from './calls/retrieve-call.ts';
import type { ScoreCall, ScoreResult } from './calls/score-call.ts';
import type { SelectCall } from './calls/select-call.ts';
import type { TreeCall, TreeResult } from './calls/tree-call.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import type { RetrieverStatistics } from './retriever-statistics.ts';

/** Text queries in, ranked passages out. */
export interface Retriever {
  readonly info: RetrieverInfo;
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  /** Whether the cache has the answers of all queries. Such a call does not wait and is not refused under load. */
  hasAnswers(call: RetrieveCall): boolean;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index, and with K_TOO_LARGE for more than a million terms. */
  explain(call: ExplainCall): Promise<ExplainResult>;
  score(call: ScoreCall): Promise<ScoreResult>;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index. */
  searchTree(call: TreeCall): Promise<TreeResult>;
  /**
   * Rejects with NOT_SUPPORTED for ids if the index was built without the look-up by id, and for a query if it has no inverted index;
   * with INVALID_REQUEST for a filter as `retrieve` does, and for a query of words that matches more than 4 million rows.
   */
  select(call: SelectCall): Promise<RowBitmap>;
  /** Rejects with NOT_SUPPORTED if the index has no vectors, with DIMENSION_MISMATCH and NON_FINITE_QUERY for a wrong vector. */
  nearest(call: NearestCall): Promise<NearestResult>;
  embed(call: EmbedCall): Promise<EmbedResult>;
  /** Scores texts with the reranker. Rejects with NOT_SUPPORTED without a reranker, with RERANK_TOO_LARGE for too many tokens. */
  rerank(call: RerankCall): Promise<RerankResult>;
  /** Passages by id, URL, title or row. Rejects with NOT_SUPPORTED if the index was built without that look-up. */
  find(call: FindCall): Promise<FindResult>;
  /** Rejects with NOT_SUPPORTED if the index has no model and no tokenizer was named. */
  cut(call: CutCall): Promise<CutResult>;
  statistics(): RetrieverStatistics;
  /** Why every call fails until the index is opened again; undefined while calls are answered. */
  readonly failure: TrawlError | undefined;
  /** Waits for running calls, then closes encoder, index and passages. Safe to call twice. */
  close(): Promise<void>;
}
