import type { ModelIdentity } from '../encoder/identity/model-identity.ts';
import type { FindCall, FindResult } from './calls/find-call.ts';
import type { RerankCall, RerankResult } from './calls/rerank-call.ts';
import type { RetrieveCall, RetrieveResult } from './calls/retrieve-call.ts';
import type { ScoreCall, ScoreResult } from './calls/score-call.ts';
import type { RetrieverInfo } from './retriever-info.ts';

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
