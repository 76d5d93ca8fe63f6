import type { Static, TSchema } from 'typebox';
import type { ErrorCode, TrawlError } from '../../errors.ts';
import type { Retriever } from '../../retrieval/retriever.ts';
import type { StageTimings } from '../../retrieval/timings.ts';
import type { ServerConfig } from '../server-config.ts';
import { type JsonObject, readRequest } from './read-request.ts';

/** What a dialect must know of the server's configuration to read a request. */
export type RequestLimits = Pick<ServerConfig, 'topk' | 'maxQueries' | 'maxQueryChars' | 'maxK' | 'maxHits'>;

/** A request understood: what to ask the retriever, and how to say the answer. */
export interface Plan {
  /** For the log: texts of the request, and hits asked for each. */
  readonly queries: number;
  readonly k: number;
  /** Name of the index, where the request's body can say it; absent, what the URL says, else the default. */
  readonly index?: string | null;
  run(retriever: Retriever, signal: AbortSignal): Promise<Answer>;
}

export interface Answer {
  readonly timings: StageTimings;
  /** Texts that were cut to the model's limit. */
  readonly truncated: number;
  /** Of queries that failed alone: for the log, since a reply tells no details. */
  readonly failures?: readonly TrawlError[];
  /**
   * The reply as JSON text in pieces, so that whoever sends it can give the event loop its turn between them. Throws the
   * error of a failed query where the dialect has no error per query.
   */
  readonly pieces: Iterable<string>;
}

/**
 * The requests and replies of one family of clients. Several share a path and are told apart by the body, so the list in
 * `dispatch.ts` has an order.
 */
export interface Dialect {
  readonly name: string;
  /** Path of its POST route. */
  readonly path: string;
  /** For the API's description: one line. */
  readonly summary: string;
  readonly request: TSchema;
  readonly reply: TSchema;
  /** A request to try. */
  readonly example: JsonObject;
  /** True where it shares requests with another dialect and has to be asked for by name. */
  readonly onlyIfNamed: boolean;
  /** Whether a body sent to its path is this dialect's. `named`: the server was told to prefer it. */
  claims(body: unknown, named: boolean): boolean;
  /** Throws RequestError for what its original server would refuse, and for what is over the limits. */
  parse(body: unknown, limits: RequestLimits): Plan;
  /** Where its clients know another status for an error than the table has. */
  readonly statuses: Readonly<Partial<Record<ErrorCode, number>>>;
  /** The JSON text that tells its clients of an error; undefined for the usual form. */
  errorBody?(error: TrawlError, status: number): string | undefined;
}

type DialectParts<Request extends TSchema, Reply extends TSchema> = Pick<
  Dialect,
  'name' | 'path' | 'summary' | 'example'
> &
  Partial<Pick<Dialect, 'onlyIfNamed' | 'claims' | 'statuses' | 'errorBody'>> & {
    readonly request: Request;
    readonly reply: Reply;
    /** Most entries of any list, where that is less than the server's limit. */
    readonly maxItems?: number;
    /** Refuses what the schema cannot say, before it is read. */
    check?(body: unknown): void;
    plan(request: Static<Request>, limits: RequestLimits): Plan;
  };

/** A dialect that keeps the types of its schemas, for clients of ours. */
export type TypedDialect<Request extends TSchema, Reply extends TSchema> = Dialect & {
  readonly request: Request;
  readonly reply: Reply;
};

/** A dialect from its parts: alone on its path, and with the usual errors, unless they say otherwise. */
export function defineDialect<Request extends TSchema, Reply extends TSchema>(
  parts: DialectParts<Request, Reply>,
): TypedDialect<Request, Reply> {
  const { request, plan, check, maxItems = Number.POSITIVE_INFINITY, ...rest } = parts;
  return {
    onlyIfNamed: false,
    claims: () => true,
    statuses: {},
    ...rest,
    request,
    parse(body, limits) {
      check?.(body);
      const most = { items: Math.min(maxItems, limits.maxQueries), characters: limits.maxQueryChars };
      return plan(readRequest(request, body, most), limits);
    },
  };
}
