import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Ranking, RowScope } from '../../search/calls/retrieve-call.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import type { SearchMode } from '../../search/search-mode.ts';
import { inputWith } from '../dialects/parts/questions.ts';
import { rankingFor } from '../dialects/parts/search-plan.ts';
import type { RequestLimits } from '../server-config.ts';
import { bm25Ranking } from './bm25-field.ts';
import { requestFilter } from './filter-field.ts';
import type { SearchRequest } from './request.ts';
import { rerankOf } from './rerank-field.ts';

/** The search that a request asks for, except for the number of hits. */
export interface SearchCall extends RowScope, Ranking {
  readonly queries: readonly EncoderInput[];
  readonly mode: SearchMode;
  readonly template?: QueryTemplate;
  readonly truncate: TruncateSide;
  readonly allowPartial?: boolean;
}

/** `k`: hits per query that the search begins with. */
export function searchCall(request: SearchRequest, limits: RequestLimits, info: RetrieverInfo, k: number): SearchCall {
  const mode = request.mode ?? limits.mode ?? info.modes[0]!;
  const filter = requestFilter(request.filter);
  const bm25 = mode === 'dense' ? undefined : bm25Ranking(request.bm25, info);
  const config = {
    ...limits,
    bm25Order: request.bm25?.order ?? limits.bm25Order,
    rerank: rerankOf(request.rerank, limits).rerank ?? null,
  };
  return {
    queries: request.queries.map((query) =>
      typeof query === 'string' ? query : inputWith(query.query, query.question, query.history),
    ),
    ...(request.allowPartial ? { allowPartial: true } : {}),
    ...(request.template === null ? {} : { template: request.template }),
    truncate: request.truncate ?? limits.truncate,
    ...rankingFor(config, k, { mode, hybrid: request.hybrid }),
    mode,
    filter,
    bm25,
  };
}
