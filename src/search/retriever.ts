import type { TrawlError } from '../base/errors.ts';
import type { ModelIdentity } from '../encoder/identity/model-identity.ts';
import type { RowBitmap } from '../engine/row-bitmap.ts';
import type {
  ExplainCall,
  ExplainResult,
  FindCall,
  FindResult,
  NearestCall,
  NearestResult,
  ScoreCall,
  ScoreResult,
  SelectCall,
} from './calls/lookup-calls.ts';
import type { CutCall, CutResult, EmbedCall, EmbedResult, RerankCall, RerankResult } from './calls/model-calls.ts';
import type { RetrieveCall, RetrieveResult } from './calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from './calls/tree-call.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import type { RetrieverStatistics } from './retriever-statistics.ts';

/** Queries in, ranked passages out. */
export interface Search {
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index. */
  searchTree(call: TreeCall): Promise<TreeResult>;
}

/** What is known of passages that a call names, by a key, a set of rows or a vector. */
export interface PassageLookup {
  /** Passages by id, URL, title or row. Rejects with NOT_SUPPORTED if the index was built without that look-up. */
  find(call: FindCall): Promise<FindResult>;
  /**
   * Rejects with NOT_SUPPORTED for ids if the index was built without the look-up by id, and for a query if it has no inverted index;
   * with INVALID_REQUEST for a filter as `retrieve` does, and for a query of words that matches more than 4 million rows.
   */
  select(call: SelectCall): Promise<RowBitmap>;
  score(call: ScoreCall): Promise<ScoreResult>;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index, and with K_TOO_LARGE for more than a million terms. */
  explain(call: ExplainCall): Promise<ExplainResult>;
  /** Rejects with NOT_SUPPORTED if the index has no vectors, with DIMENSION_MISMATCH and NON_FINITE_QUERY for a wrong vector. */
  nearest(call: NearestCall): Promise<NearestResult>;
}

/** The models of an index, for texts of the caller. */
export interface Models {
  embed(call: EmbedCall): Promise<EmbedResult>;
  /** Scores texts with the reranker. Rejects with NOT_SUPPORTED without a reranker, with RERANK_TOO_LARGE for too many tokens. */
  rerank(call: RerankCall): Promise<RerankResult>;
  /** Rejects with NOT_SUPPORTED if the index has no model and no tokenizer was named. */
  cut(call: CutCall): Promise<CutResult>;
}

/** What can be asked of an index, or of several as one. */
export interface Retriever extends Search, PassageLookup, Models {
  readonly info: RetrieverInfo;
}

/** A retriever that belongs to whoever opened it. */
export interface OpenRetriever extends Retriever {
  statistics(): RetrieverStatistics;
  /** Why every call fails until the index is opened again; undefined while calls are answered. */
  readonly failure: TrawlError | undefined;
  /** Waits for running calls, then closes encoder, index and passages. Safe to call twice. */
  close(): Promise<void>;
}

/** What the commands that search for many queries need to know of an index. */
export interface SearchSourceInfo
  extends Pick<RetrieverInfo, 'index' | 'rows' | 'modes' | 'bm25' | 'columns' | 'generation' | 'members'> {
  readonly model: Pick<ModelIdentity, 'name' | 'sha256' | 'prefixes' | 'queryTemplate'> | null;
  readonly reranker: RetrieverInfo['reranker'];
}

/**
 * The part of a `Retriever` that the commands with many queries use: bulk search, mining and Agentic-R's candidates. An opened index
 * is one, and so is an index of a running server (`ServerRetriever`).
 */
export interface SearchSource {
  readonly info: SearchSourceInfo;
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  score(call: ScoreCall): Promise<ScoreResult>;
  find(call: FindCall): Promise<FindResult>;
  rerank(call: RerankCall): Promise<RerankResult>;
}
