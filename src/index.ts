/** The stable public API of the package. */

export { Perturbation } from '../training/perturbation/perturbation.ts';
export { type PerturbationSettings, perturbationSettings } from '../training/perturbation/settings.ts';
export { ERROR_CODES, type ErrorCode, TrawlError } from './base/errors.ts';
export { type CrossEncoder, openCrossEncoder, type ScoreOptions, type ScoreResult } from './encoder/cross-encoder.ts';
export type { EndpointOptions } from './encoder/endpoint/endpoint-options.ts';
export type { ModelIdentity } from './encoder/identity/model-identity.ts';
export { EncoderPools } from './encoder/pool/encoder-pools.ts';
export { HttpReranker, type HttpRerankerOptions } from './encoder/rerank/http-reranker.ts';
export { ModelReranker } from './encoder/rerank/model-reranker.ts';
export type {
  Reranker,
  RerankerInfo,
  RerankList,
  RerankOptions,
  RerankOutcome,
  RerankScores,
} from './encoder/rerank/reranker.ts';
export type { QuestionAndQuery, TruncateSide } from './encoder/text-encoder.ts';
export { METRICS, type Metric } from './engine/metric.ts';
export { readViews } from './index/views/read-views.ts';
export type { DateBound, ViewDefinition } from './index/views/view-definition.ts';
export type {
  Hit,
  QueryAnswer,
  QueryCertificate,
  QueryEmbedding,
  QueryOutcome,
  Reranking,
} from './search/calls/query-outcome.ts';
export type {
  EmbeddedQuery,
  RerankSettings,
  RetrieveCall,
  RetrieveQuery,
  RetrieveResult,
  RowScope,
} from './search/calls/retrieve-call.ts';
export { GroupRetriever } from './search/group/group-retriever.ts';
export type { HybridPlace, HybridPlaces } from './search/hybrid/hybrid-fusion.ts';
export { type HybridOptions, type HybridSettings, hybridSettings } from './search/hybrid/hybrid-settings.ts';
export type { ServingOptions } from './search/index-retriever.ts';
export { AnswerCache } from './search/layers/answer-cache.ts';
export { narrowedRetriever } from './search/layers/passing-retriever.ts';
export type { OpenRetrieverOptions } from './search/opening/open-retriever.ts';
export type {
  EmbedCall,
  EmbedResult,
  FindCall,
  FindResult,
  FoundPassage,
  RerankCall,
  RerankResult,
  Retriever,
} from './search/retriever.ts';
export type { IndexMemory, RetrieverInfo, ViewInfo } from './search/retriever-info.ts';
export type { RetrieverStatistics, SharingStatistics, WaitingStatistics } from './search/retriever-statistics.ts';
export { AccessKeys, type Scope } from './server/access/access-keys.ts';
export { buildApp } from './server/app.ts';
export { IndexRegistry } from './server/indexes/index-registry.ts';
export { IndexSlot, type IndexTarget, type OpenIndex, type OpenProgress } from './server/indexes/index-slot.ts';
export { ServerMetrics } from './server/metrics/server-metrics.ts';
export type { ServerConfig, TlsPem } from './server/server-config.ts';
export { openIndex } from './stores/open-index.ts';
