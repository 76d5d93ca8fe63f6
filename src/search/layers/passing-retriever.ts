import { bothFilters } from '../../engine/filter/filter.ts';
import type { CallOptions, RowScope } from '../calls/retrieve-call.ts';
import type { Retriever } from '../retriever.ts';

/**
 * A retriever that passes its calls on to another one.
 *
 * @param changed what each call becomes before it is passed on.
 * @param own what it answers itself.
 */
export function passingRetriever(
  inner: Retriever,
  changed: <Call extends CallOptions & RowScope>(call: Call) => Call,
  own: Partial<Retriever> = {},
): Retriever {
  return {
    info: inner.info,
    retrieve: (call) => inner.retrieve(changed(call)),
    searchTree: (call) => inner.searchTree(changed(call)),
    find: (call) => inner.find(changed(call)),
    select: (call) => inner.select(changed(call)),
    score: (call) => inner.score(changed(call)),
    explain: (call) => inner.explain(changed(call)),
    nearest: (call) => inner.nearest(changed(call)),
    embed: (call) => inner.embed(changed(call)),
    rerank: (call) => inner.rerank(changed(call)),
    cut: (call) => inner.cut(changed(call)),
    ...own,
  };
}

/**
 * A retriever whose calls all stay within a scope: a call can narrow it by its own filter and views, but not leave it. Texts that are
 * embedded or reranked belong to the caller, so the scope has no effect on them.
 *
 * @param terms the scope; with `patience` also how long every call may wait, in place of the call's own `patience`.
 */
export function narrowedRetriever(
  retriever: Retriever,
  { patience, filter, views = [] }: RowScope & Pick<CallOptions, 'patience'>,
): Retriever {
  if (filter === undefined && views.length === 0 && patience === undefined) return retriever;
  const within = [...new Set([...(retriever.info.within ?? []), ...views])];
  const info = within.length === 0 ? retriever.info : { ...retriever.info, within };
  const narrowed = <Call extends CallOptions & RowScope>(call: Call): Call => {
    const bothViews = [...new Set([...views, ...(call.views ?? [])])];
    return {
      ...call,
      filter: bothFilters(filter, call.filter),
      views: bothViews.length === 0 ? undefined : bothViews,
      patience: patience ?? call.patience,
    };
  };
  return passingRetriever(retriever, narrowed, { info });
}
