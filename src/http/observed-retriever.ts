import type { RetrieveCall, RetrieveResult, Retriever } from '../retrieval/retriever.ts';
import type { ServerMetrics } from './server-metrics.ts';

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

interface Observers {
  readonly metrics: Pick<ServerMetrics, 'retrieved'>;
  readonly config: { readonly record: QueryRecord | null };
}

/** The same retriever, each of whose searches is counted, and kept where the server keeps queries. */
export function observed(
  retriever: Retriever,
  request: Pick<RecordedRequest, 'requestId' | 'dialect'>,
  { metrics, config: { record } }: Observers,
): Retriever {
  const { index, generation } = retriever.info;
  return {
    info: retriever.info,
    async retrieve(call) {
      const result = await retriever.retrieve(call);
      metrics.retrieved(result);
      record?.record({ ...request, index, generation }, call, result);
      return result;
    },
    hasAnswers: (call) => retriever.hasAnswers(call),
    embed: (call) => retriever.embed(call),
    find: (call) => retriever.find(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}
