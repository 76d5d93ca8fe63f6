import { TrawlError } from '../errors.ts';
import type { RetrieveCall, Retriever } from '../retrieval/retriever.ts';
import type { ServerConfig } from './server-config.ts';

/**
 * The same retriever, whose first call is refused with OVERLOADED where it would wait longer than this listener lets it, as
 * far as can be told from what waits. A request that has begun is not refused half-way, nor one whose answers are at hand.
 */
export function shedding(retriever: Retriever, { shedAfterMs }: Pick<ServerConfig, 'shedAfterMs'>): Retriever {
  if (shedAfterMs === 0) return retriever;
  let begun = false;
  const begin = (): void => {
    if (!begun) refuseIfLate(retriever, shedAfterMs);
    begun = true;
  };
  return {
    info: retriever.info,
    async retrieve(call: RetrieveCall) {
      if (!retriever.hasAnswers(call)) begin();
      return retriever.retrieve(call);
    },
    hasAnswers: (call) => retriever.hasAnswers(call),
    async embed(call) {
      begin();
      return retriever.embed(call);
    },
    // A look-up waits for neither encoder nor engine.
    find: (call) => retriever.find(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}

function refuseIfLate(retriever: Retriever, shedAfterMs: number): void {
  const { encoder, search } = retriever.statistics();
  const expectedMs = Math.round(encoder.expectedWaitMs + search.expectedWaitMs);
  if (expectedMs <= shedAfterMs) return;
  throw new TrawlError(
    'OVERLOADED',
    `A request would wait about ${expectedMs} ms, more than the ${shedAfterMs} ms that this server lets it. Try again later.`,
    { details: { expectedMs, shedAfterMs, retryAfterS: Math.ceil((expectedMs - shedAfterMs) / 1000) } },
  );
}
