import type { RerankSettings } from '../search/calls/rerank-call.ts';
import type { RetrieveCall } from '../search/calls/retrieve-call.ts';
import { type HybridOptions, hybridSettings } from '../search/hybrid/hybrid-settings.ts';
import type { SearchMode } from '../search/search-mode.ts';
import type { ServerConfig } from './server-config.ts';

/** How passages are ranked by default. */
export interface RankingConfig extends Pick<ServerConfig, 'mode' | 'bm25Order' | 'hybrid'> {
  /** Null: no reranking. */
  readonly rerank: RerankSettings | null;
}

/** The part of a search that a request and the server's configuration decide together. */
export type Ranking = Pick<RetrieveCall, 'mode' | 'bm25Order' | 'hybrid' | 'rerank'>;

/** How a request for `k` hits ranks passages: as the request says, else as the server is configured, else as the index does. */
export function rankingFor(
  { bm25Order, hybrid, rerank, ...config }: RankingConfig,
  k: number,
  request: { readonly mode?: SearchMode | null; readonly hybrid?: HybridOptions | null } = {},
): Ranking {
  const mode = request.mode ?? config.mode;
  const depth = Math.max(k, rerank?.depth ?? 0);
  return {
    ...(mode === null ? {} : { mode }),
    ...(bm25Order === 'row' ? {} : { bm25Order }),
    ...(mode === 'hybrid' ? { hybrid: hybridSettings(request.hybrid ?? {}, depth, hybrid) } : {}),
    ...(rerank === null ? {} : { rerank }),
  };
}
