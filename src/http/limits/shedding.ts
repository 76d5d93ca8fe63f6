import { TrawlError } from '../../errors.ts';
import type { RetrieveCall, Retriever } from '../../retrieval/retriever.ts';
import type { ServerConfig } from '../server-config.ts';

/**
 * A retriever for one request with load shedding: its first call fails with OVERLOADED if the expected wait is longer than
 * `shedAfterMs`. Later calls of the request, and calls that the cache can answer, are not refused.
 */
export function shedding(retriever: Retriever, { shedAfterMs }: Pick<ServerConfig, 'shedAfterMs'>): Retriever {
  if (shedAfterMs === 0) return retriever;
  let admitted = false;
  const admit = (): void => {
    if (!admitted) refuseIfOverloaded(retriever, shedAfterMs);
    admitted = true;
  };
  return {
    info: retriever.info,
    get failure() {
      return retriever.failure;
    },
    async retrieve(call: RetrieveCall) {
      if (!retriever.hasAnswers(call)) admit();
      return retriever.retrieve(call);
    },
    hasAnswers: (call) => retriever.hasAnswers(call),
    explain: (call) => retriever.explain(call),
    async embed(call) {
      admit();
      return retriever.embed(call);
    },
    // Looking up passages needs neither the encoder nor the engine.
    find: (call) => retriever.find(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}

function refuseIfOverloaded(retriever: Retriever, shedAfterMs: number): void {
  const { encoder, search } = retriever.statistics();
  const expectedMs = Math.round(encoder.expectedWaitMs + search.expectedWaitMs);
  if (expectedMs <= shedAfterMs) return;
  throw new TrawlError(
    'OVERLOADED',
    `The request would wait about ${expectedMs} ms; the limit is ${shedAfterMs} ms. Try again later.`,
    { details: { expectedMs, shedAfterMs, retryAfterS: Math.ceil((expectedMs - shedAfterMs) / 1000) } },
  );
}
