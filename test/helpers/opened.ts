import type { OpenRetriever, Retriever } from '../../src/search/retriever.ts';
import { NO_STATISTICS } from '../../src/search/retriever-statistics.ts';

/** A retriever as a server takes it; whoever opened what it asks closes that. */
export function opened(retriever: Retriever): OpenRetriever {
  return { ...retriever, failure: undefined, statistics: () => NO_STATISTICS, close: async () => undefined };
}
