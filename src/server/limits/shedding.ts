import { TrawlError } from '../../base/errors.ts';
import type { RetrieveCall } from '../../search/calls/retrieve-call.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { ServerConfig } from '../server-config.ts';

/**
 * A retriever for one request with load shedding: the first call that the cache cannot answer fails with OVERLOADED if it would
 * probably wait longer than `shedAfterMs` in the queues that it joins. Once such a call is admitted, the request's later calls are
 * not refused.
 */
export function shedding(retriever: Retriever, { shedAfterMs }: Pick<ServerConfig, 'shedAfterMs'>): Retriever {
  if (shedAfterMs === 0) return retriever;
  let admitted = false;
  const admit = (expectedMs: number): void => {
    if (!admitted) refuseIfLonger(expectedMs, shedAfterMs);
    admitted = true;
  };
  return {
    info: retriever.info,
    get failure() {
      return retriever.failure;
    },
    async retrieve(call: RetrieveCall) {
      if (!retriever.hasAnswers(call)) admit(retrieveWaitMs(retriever, call));
      return retriever.retrieve(call);
    },
    hasAnswers: (call) => retriever.hasAnswers(call),
    explain: (call) => retriever.explain(call),
    async score(call) {
      admit(retrieveWaitMs(retriever, { ...call, queries: [], k: 1 }));
      return retriever.score(call);
    },
    // A search of words has no queue.
    searchTree: (call) => retriever.searchTree(call),
    select: (call) => retriever.select(call),
    async nearest(call) {
      admit(retriever.statistics().search.expectedWaitMs);
      return retriever.nearest(call);
    },
    async embed(call) {
      admit(retriever.statistics().encoder.expectedWaitMs);
      return retriever.embed(call);
    },
    async rerank(call) {
      admit(retriever.statistics().rerank.expectedWaitMs);
      return retriever.rerank(call);
    },
    // Looking up passages needs neither the encoder nor the engine.
    find: (call) => retriever.find(call),
    cut: (call) => retriever.cut(call),
    statistics: () => retriever.statistics(),
    close: () => retriever.close(),
  };
}

/** A search by vectors waits for the encoder and then for the engine; a BM25 search has no queue. Both may wait for the reranker. */
function retrieveWaitMs(retriever: Retriever, call: RetrieveCall): number {
  const { mode = retriever.info.modes[0] } = call;
  const { encoder, search, rerank } = retriever.statistics();
  const rerankMs = call.rerank === undefined ? 0 : rerank.expectedWaitMs;
  return mode === 'bm25' ? rerankMs : encoder.expectedWaitMs + search.expectedWaitMs + rerankMs;
}

function refuseIfLonger(waitMs: number, shedAfterMs: number): void {
  const expectedMs = Math.round(waitMs);
  if (expectedMs <= shedAfterMs) return;
  throw new TrawlError(
    'OVERLOADED',
    `The request would wait about ${expectedMs} ms; the limit is ${shedAfterMs} ms. Try again later.`,
    { details: { expectedMs, shedAfterMs, retryAfterS: Math.ceil((expectedMs - shedAfterMs) / 1000) } },
  );
}
