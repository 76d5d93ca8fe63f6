import { bothFilters } from '../../engine/filter/filter.ts';
import type { RowScope } from '../calls/row-scope.ts';
import type { Retriever } from '../retriever.ts';

/**
 * A retriever whose every call stays within a scope: a call can narrow it by its own filter and views, but not leave it. Texts that are
 * embedded or reranked are the caller's own.
 */
export function narrowedRetriever(retriever: Retriever, scope: RowScope): Retriever {
  const { filter, views = [] } = scope;
  if (filter === undefined && views.length === 0) return retriever;
  const within = [...new Set([...(retriever.info.within ?? []), ...views])];
  const narrowed = <Call extends RowScope>(call: Call): Call => ({ ...call, ...bothScopes(scope, call) });
  return {
    info: within.length === 0 ? retriever.info : { ...retriever.info, within },
    get failure() {
      return retriever.failure;
    },
    retrieve: (call) => retriever.retrieve(narrowed(call)),
    hasAnswers: (call) => retriever.hasAnswers(narrowed(call)),
    searchTree: (call) => retriever.searchTree(narrowed(call)),
    select: (call) => retriever.select(narrowed(call)),
    nearest: (call) => retriever.nearest(narrowed(call)),
    explain: (call) => retriever.explain(narrowed(call)),
    score: (call) => retriever.score(narrowed(call)),
    find: (call) => retriever.find(narrowed(call)),
    rerank: (call) => retriever.rerank(call),
    embed: (call) => retriever.embed(call),
    cut: (call) => retriever.cut(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}

function bothScopes(one: RowScope, other: RowScope): RowScope {
  const filter = bothFilters(one.filter, other.filter);
  const views = [...new Set([...(one.views ?? []), ...(other.views ?? [])])];
  return { filter, ...(views.length === 0 ? {} : { views }) };
}
