import type { Ranking } from '../search/calls/retrieve-call.ts';
import { type HybridOptions, hybridSettings } from '../search/hybrid/hybrid-settings.ts';
import type { SearchMode } from '../search/search-mode.ts';
import type { RequestLimits } from './server-config.ts';

/** How a request for `k` hits ranks passages: as the request says, else as the server is configured, else as the index does. */
export function rankingFor(
  { bm25Order, hybrid, rerank, ...config }: RequestLimits,
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
