import { type OpenRetrieverOptions, openRetriever } from '../../src/search/opening/open-retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { keptEncoders } from '../helpers/kept-encoders.ts';

/** For other openings in the test file. */
export const encoderPools = keptEncoders();

interface Place {
  readonly rank: number;
  readonly score: number;
}

export interface ServedHit {
  readonly row: number;
  readonly id: string;
  readonly score: number;
  /** Of hybrid search. */
  readonly dense?: Place | null;
  readonly bm25?: Place | null;
}

export interface Answer {
  readonly status: number;
  readonly body: {
    readonly mode?: string;
    readonly results: { embedded: object; certificate: object; hits: ServedHit[] }[];
    readonly hits?: ServedHit[];
    readonly result: { document: { id: string }; score: number }[][];
  };
}

/** Requests to a server over an index, each with its config. */
export async function served<T>(
  index: string,
  use: (post: (path: string, body: object, config?: Partial<ServerConfig>) => Promise<Answer>) => Promise<T>,
  options: OpenRetrieverOptions = {},
): Promise<T> {
  const retriever = await openRetriever(index, { encoderPools, ...options });
  try {
    return await use(async (url, payload, config = {}) => {
      const app = buildApp(retriever, config);
      const response = await app.inject({ method: 'POST', url, payload });
      return { status: response.statusCode, body: response.json() };
    });
  } finally {
    await retriever.close();
  }
}
