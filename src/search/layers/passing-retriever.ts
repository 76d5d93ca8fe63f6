import type { Retriever } from '../retriever.ts';

/**
 * A retriever that asks another one.
 *
 * @param changed what each call becomes before it is passed on.
 * @param own what it does not pass on.
 */
export function passingRetriever(
  inner: Retriever,
  changed: <Call extends object>(call: Call) => Call,
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
