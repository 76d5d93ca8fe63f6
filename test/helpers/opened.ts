import type { OpenRetriever, Retriever } from '../../src/search/retriever.ts';

/** A retriever around an open one, as a server takes it. */
export function opened(retriever: Retriever, inner: OpenRetriever): OpenRetriever {
  return {
    ...retriever,
    get failure() {
      return inner.failure;
    },
    statistics: () => inner.statistics(),
    close: () => inner.close(),
  };
}
