/** The client of Trawl servers: `import { TrawlClient } from 'trawl-retrieval/client'`. */

export { type CallOptions, type ClientOptions, TrawlClient } from './client.ts';
export { TrawlConnectionError, TrawlResponseError } from './errors.ts';
export type { RetryOptions } from './retry.ts';
export type {
  FusedHit,
  GroupInfo,
  Hit,
  IndexInfo,
  Passage,
  PassagesReply,
  PassagesRequest,
  Query,
  QueryResult,
  Readiness,
  ScoredDocument,
  ScoreQuery,
  ScoreReply,
  ScoreRequest,
  SearchReply,
  SearchRequest,
} from './types.ts';
