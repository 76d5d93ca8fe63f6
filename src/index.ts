/** The package's public surface: everything that is promised to stay. */

export { type CrossEncoder, openCrossEncoder, type ScoreOptions, type ScoreResult } from './embedding/cross-encoder.ts';
export type { QuestionAndQuery, TruncateSide } from './embedding/text-encoder.ts';
export { ERROR_CODES, type ErrorCode, TrawlError } from './errors.ts';
export { buildApp } from './http/app.ts';
export { RetrieverHolder } from './http/retriever-holder.ts';
export type { ServerConfig } from './http/server-config.ts';
export type { ModelIdentity } from './manifest/model-identity.ts';
export { METRICS, type Metric } from './metric.ts';
export { AnswerCache } from './retrieval/answer-cache.ts';
export type { MeetingOptions } from './retrieval/assemble-retriever.ts';
export { type OpenRetrieverOptions, openRetriever } from './retrieval/open-retriever.ts';
export type {
  EmbedCall,
  EmbedResult,
  FindCall,
  FindResult,
  FoundPassage,
  Hit,
  QueryCertificate,
  QueryOutcome,
  RetrieveCall,
  RetrieveResult,
  Retriever,
  RetrieverInfo,
  RetrieverStatistics,
  SharingStatistics,
  WaitingStatistics,
} from './retrieval/retriever.ts';
