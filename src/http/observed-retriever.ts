import type { RetrieveCall, RetrieveResult, Retriever } from '../retrieval/retriever.ts';

/** Keeps what was asked and found. It must not throw and not wait. */
export interface QueryRecord {
  record(request: RecordedRequest, call: RetrieveCall, result: RetrieveResult): void;
}

export interface RecordedRequest {
  readonly requestId: string;
  readonly dialect: string;
  readonly index: string;
  readonly generation: string;
}

/** The same retriever, with a look at each search it answers. */
export function observed(
  retriever: Retriever,
  onRetrieve: (call: RetrieveCall, result: RetrieveResult) => void,
): Retriever {
  return {
    info: retriever.info,
    async retrieve(call) {
      const result = await retriever.retrieve(call);
      onRetrieve(call, result);
      return result;
    },
    embed: (call) => retriever.embed(call),
    find: (call) => retriever.find(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}
