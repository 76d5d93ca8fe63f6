/** The stable public API of the package. */

export { type CrossEncoder, openCrossEncoder, type ScoreOptions, type ScoreResult } from './embedding/cross-encoder.ts';
export type { EndpointOptions } from './embedding/endpoint/endpoint-options.ts';
export { EncoderPools } from './embedding/pool/encoder-pools.ts';
export type { QuestionAndQuery, TruncateSide } from './embedding/text-encoder.ts';
export { ERROR_CODES, type ErrorCode, TrawlError } from './errors.ts';
export { AccessKeys, type Scope } from './http/access/access-keys.ts';
export { buildApp } from './http/app.ts';
export { IndexSlot, type IndexTarget, type OpenIndex, type OpenProgress } from './http/indexes/index-slot.ts';
export { RetrieverHolder } from './http/indexes/retriever-holder.ts';
export { ServerMetrics } from './http/metrics/server-metrics.ts';
export type { ServerConfig, TlsPem } from './http/server-config.ts';
export type { ModelIdentity } from './manifest/model-identity.ts';
export { METRICS, type Metric } from './metric.ts';
export { Perturbation } from './perturbation/perturbation.ts';
export { type PerturbationSettings, perturbationSettings } from './perturbation/settings.ts';
export { HttpReranker, type HttpRerankerOptions } from './rerank/http-reranker.ts';
export { ModelReranker } from './rerank/model-reranker.ts';
export type {
  Reranker,
  RerankerInfo,
  RerankList,
  RerankOptions,
  RerankOutcome,
  RerankScores,
} from './rerank/reranker.ts';
export type { EmbedCall, EmbedResult } from './retrieval/calls/embed-call.ts';
export type { FindCall, FindResult, FoundPassage } from './retrieval/calls/find-call.ts';
export type {
  Hit,
  QueryAnswer,
  QueryCertificate,
  QueryEmbedding,
  QueryOutcome,
} from './retrieval/calls/query-outcome.ts';
export type { RerankCall, Reranking, RerankResult, RerankSettings } from './retrieval/calls/rerank-call.ts';
export type { EmbeddedQuery, RetrieveCall, RetrieveQuery, RetrieveResult } from './retrieval/calls/retrieve-call.ts';
export type { RowScope } from './retrieval/calls/row-scope.ts';
export { GroupRetriever } from './retrieval/group/group-retriever.ts';
export type { HybridPlace, HybridPlaces } from './retrieval/hybrid/hybrid-fusion.ts';
export { type HybridOptions, type HybridSettings, hybridSettings } from './retrieval/hybrid/hybrid-settings.ts';
export { AnswerCache } from './retrieval/layers/answer-cache.ts';
export { narrowedRetriever } from './retrieval/layers/narrowed-retriever.ts';
export type { ServingOptions } from './retrieval/opening/assemble-retriever.ts';
export { type OpenRetrieverOptions, openRetriever } from './retrieval/opening/open-retriever.ts';
export type { Retriever } from './retrieval/retriever.ts';
export type { IndexMemory, RetrieverInfo, ViewInfo } from './retrieval/retriever-info.ts';
export type { RetrieverStatistics, SharingStatistics, WaitingStatistics } from './retrieval/retriever-statistics.ts';
export { readViews } from './views/read-views.ts';
export type { DateBound, ViewDefinition } from './views/view-definition.ts';
