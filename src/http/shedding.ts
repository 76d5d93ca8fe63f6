import { TrawlError } from '../errors.ts';
import type { Retriever } from '../retrieval/retriever.ts';
import type { ServerConfig } from './server-config.ts';

/** OVERLOADED where a request would wait longer than this listener lets it, as far as can be told from what waits. */
export function shedIfLate(retriever: Retriever, { shedAfterMs }: Pick<ServerConfig, 'shedAfterMs'>): void {
  if (shedAfterMs === 0) return;
  const { encoder, search } = retriever.statistics();
  const expectedMs = Math.round(encoder.expectedWaitMs + search.expectedWaitMs);
  if (expectedMs <= shedAfterMs) return;
  throw new TrawlError(
    'OVERLOADED',
    `A request would wait about ${expectedMs} ms, more than the ${shedAfterMs} ms that this server lets it. Try again later.`,
    { details: { expectedMs, shedAfterMs } },
  );
}
