import { type HybridOptions, hybridSettings } from '../retrieval/hybrid-settings.ts';
import type { RetrieveCall, SearchMode } from '../retrieval/retriever.ts';
import type { ServerConfig } from './server-config.ts';

/** The server's defaults of how passages are ranked. */
export type RankingConfig = Pick<ServerConfig, 'mode' | 'bm25Order' | 'hybrid'>;

/**
 * How a request for `k` hits ranks passages: as the request says, else as the server is configured. Without a mode, the index
 * decides, and never for hybrid.
 */
export function rankingFor(
  config: RankingConfig,
  k: number,
  request: { readonly mode?: SearchMode | null | undefined; readonly hybrid?: HybridOptions | null } = {},
): Pick<RetrieveCall, 'mode' | 'bm25Order' | 'hybrid'> {
  const mode = request.mode ?? config.mode;
  return {
    ...(mode === null ? {} : { mode }),
    ...(config.bm25Order === 'row' ? {} : { bm25Order: config.bm25Order }),
    ...(mode === 'hybrid' ? { hybrid: hybridSettings(request.hybrid ?? {}, k, config.hybrid) } : {}),
  };
}
