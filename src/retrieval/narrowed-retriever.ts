import { bothFilters, type Filter } from '../filter/filter.ts';
import type { Retriever } from './retriever.ts';

/** A retriever whose searches also pass `filter`, whatever filter a call has. Look-ups by id are not limited. */
export function narrowedRetriever(retriever: Retriever, filter: Filter | null): Retriever {
  if (filter === null) return retriever;
  const narrowed = <Call extends { readonly filter?: Filter }>(call: Call): Call => ({
    ...call,
    filter: bothFilters(filter, call.filter)!,
  });
  return {
    info: retriever.info,
    get failure() {
      return retriever.failure;
    },
    retrieve: (call) => retriever.retrieve(narrowed(call)),
    hasAnswers: (call) => retriever.hasAnswers(narrowed(call)),
    searchTree: (call) => retriever.searchTree(narrowed(call)),
    select: (call) => retriever.select(call),
    explain: (call) => retriever.explain(call),
    // The caller names the passages. Ranks are those in the whole index.
    score: (call) => retriever.score(call),
    rerank: (call) => retriever.rerank(call),
    embed: (call) => retriever.embed(call),
    find: (call) => retriever.find(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}
