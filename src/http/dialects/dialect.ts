import type { TrawlError } from '../../errors.ts';
import type { QueryOutcome, RetrieveCall } from '../../retrieval/retriever.ts';
import type { ServerConfig } from '../server-config.ts';

/** What a dialect must know of the server's configuration to read a request. */
export type RequestLimits = Pick<ServerConfig, 'topk' | 'maxQueries' | 'maxK' | 'maxHits'>;

/** A request understood: what to ask the retriever, and how to say the answer. */
export interface ParsedRequest {
  readonly call: Pick<RetrieveCall, 'queries' | 'k' | 'truncate'>;
  /**
   * The reply as JSON text in pieces, so that whoever sends it can give the event loop its turn between them. Throws the
   * error of a failed query where the dialect has no error per query.
   */
  reply(outcomes: readonly QueryOutcome[]): Iterable<string>;
}

/**
 * The requests and replies of one family of clients. Several share a path and are told apart by the body, so the list in
 * `dispatch.ts` has an order.
 */
export interface Dialect {
  readonly name: string;
  /** Path of its POST route. */
  readonly path: string;
  /** Whether a body sent to that path is this dialect's. */
  claims(body: unknown): boolean;
  /** Throws RequestError for what its original server would refuse, and for what is over the limits. */
  parse(body: unknown, limits: RequestLimits): ParsedRequest;
  /** The JSON text that tells its clients of an error. */
  errorBody(error: TrawlError): string;
}
