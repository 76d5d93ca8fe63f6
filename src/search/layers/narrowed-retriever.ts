import { bothFilters } from '../../engine/filter/filter.ts';
import type { Patience, RowScope } from '../calls/retrieve-call.ts';
import type { Retriever } from '../retriever.ts';
import { passingRetriever } from './passing-retriever.ts';

/** What a retriever adds to every call. */
interface CallTerms extends RowScope {
  /** Default: as the call says. */
  readonly patience?: Patience | undefined;
}

/**
 * A retriever whose every call stays within a scope: a call can narrow it by its own filter and views, but not leave it. Texts that are
 * embedded or reranked are the caller's own, so the scope has no effect on them.
 */
export function narrowedRetriever(retriever: Retriever, { patience, ...scope }: CallTerms): Retriever {
  const { filter, views = [] } = scope;
  if (filter === undefined && views.length === 0 && patience === undefined) return retriever;
  const within = [...new Set([...(retriever.info.within ?? []), ...views])];
  const terms = patience === undefined ? {} : { patience };
  return passingRetriever(retriever, (call) => ({ ...call, ...bothScopes(scope, call), ...terms }), {
    info: within.length === 0 ? retriever.info : { ...retriever.info, within },
  });
}

function bothScopes(one: RowScope, other: RowScope): RowScope {
  const filter = bothFilters(one.filter, other.filter);
  const views = [...new Set([...(one.views ?? []), ...(other.views ?? [])])];
  return { filter, ...(views.length === 0 ? {} : { views }) };
}
