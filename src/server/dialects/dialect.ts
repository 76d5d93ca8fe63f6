import type { Static, TSchema } from 'typebox';
import type { ErrorCode, TrawlError } from '../../base/errors.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { StageTimings } from '../../search/timings.ts';
import type { RecordedOpening, RecordedSearch } from '../recording/recorded-search.ts';
import type { RequestLimits } from '../server-config.ts';
import { type JsonObject, readRequest } from './parts/read-request.ts';

/** A parsed request: how to run it and how to write its reply. */
export interface Plan {
  /** Number of queries or texts, and hits per query, for the log. */
  readonly queries: number;
  readonly k: number;
  /** Name of the index in the body, or several to search as one, if the dialect has that field. */
  readonly index?: string | readonly string[] | null;
  /** Encoder names that the request may mean, most likely first. They choose the index if the request does not name one. */
  readonly models?: readonly string[];
  /** The texts of a request that embeds or reranks them and searches nothing; a search hook may hold such a request back. */
  readonly given?: readonly string[];
  run(retriever: Retriever, signal: AbortSignal): Promise<Answer>;
}

export interface Answer {
  readonly timings: StageTimings;
  /** The search of the request, to be counted and recorded once; undefined if nothing was searched. */
  readonly search?: RecordedSearch;
  /** What the request opened, to be recorded. */
  readonly openings?: readonly RecordedOpening[];
  /** Number of truncated queries. Default: 0. */
  readonly truncated?: number;
  /** Errors of single queries with details, for the log. */
  readonly failures?: readonly TrawlError[];
  /**
   * The reply's JSON text in pieces; the writer may yield to the event loop between two pieces. The iterator throws the error of a
   * failed query, unless the dialect has errors per query.
   */
  readonly pieces: Iterable<string>;
}

/** A passage in a server's reply, as its client reads it. */
export interface ServerPassage {
  /** Undefined if the dialect, or the server's corpus, has no ids. */
  readonly id: string | undefined;
  readonly title: string | undefined;
  /** Title and text if the dialect has both, usually with a newline in between; else what it has. */
  readonly contents: string;
  /** Without the title. */
  readonly text: string;
  readonly score: number | undefined;
}

/** The passages of a query, best first; or why the query failed, in a dialect with errors per query. */
export type ServerList = readonly ServerPassage[] | { readonly failed: string };

/** How `trawl eval --url` asks a server of a dialect, and where the passages stand in the reply. */
interface DialectClient {
  /** After the server's URL, if it is not the path of the dialect. */
  readonly path?: string;
  /** Whether a request can have several queries. */
  readonly batch: boolean;
  /**
   * What a hit has of its passage or document. `contents` is title and text in one; the first line counts as the title. An `excerpt` may
   * lack the answer that the passage has.
   */
  readonly hit: readonly ('id' | 'title' | 'text' | 'contents' | 'excerpt')[];
  request(queries: readonly string[], k: number): Readonly<Record<string, unknown>>;
  /** The lists in a reply (JSON), one per query. Throws an Error for a reply of another form. */
  lists(reply: unknown): readonly ServerList[];
}

/** Projects with the same setting, as docs/agents.md shows them. */
interface ClientProject {
  readonly name: string;
  /** Where a project sets the server's address, in Markdown; undefined: docs/agents.md does not say. */
  readonly setting?: string;
  /** The versions with which tests check the setting; undefined: it was only read in the project's sources. */
  readonly checkedAgainst?: string;
}

/** How errors are written for a family of clients. */
export interface ErrorFormat {
  readonly name: string;
  /** Statuses that differ from the table in error-status.ts, because its clients expect them. */
  readonly statuses: Readonly<Partial<Record<ErrorCode, number>>>;
  /** The status of a single error; undefined: its code decides. */
  statusOf?(error: TrawlError): number | undefined;
  /** The JSON text of an error; undefined for the usual format. */
  errorBody?(error: TrawlError, status: number): string | undefined;
}

/**
 * The request and reply format of a family of clients. Dialects that share a path are recognised by the body, in the order of the
 * list in `dispatch.ts`.
 */
export interface Dialect extends ErrorFormat {
  /** Method of its route. The fields of a GET request are the parameters of its URL. */
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** One line for the API's description. */
  readonly summary: string;
  readonly request: TSchema;
  readonly reply: TSchema;
  /** Default: JSON. */
  readonly replyType?: 'text/plain';
  /** What `errorBody` writes, if it is not the usual format or an extension of it. */
  readonly errorReply?: TSchema;
  /** An example of a request. */
  readonly example: JsonObject;
  /** The projects whose clients use it, for the documents. Empty for Trawl's own API and for a second path of another dialect. */
  readonly projects: readonly ClientProject[];
  /** The section of docs/dialects.md, if it is another dialect's. */
  readonly section?: string;
  /** By what the body is recognised on a shared path, for the documents, if neither `keys` nor its name says it. */
  readonly recognisedBy?: string;
  /**
   * Keys of the body that only its clients send. Such a body belongs to the first dialect of the path that has one of its keys,
   * whichever is preferred.
   */
  readonly keys?: readonly string[];
  /** Undefined if the dialect does not search. */
  readonly client?: DialectClient;
  /** Whether its requests look like another dialect's. It is then tried only if the server is configured to prefer it. */
  readonly onlyIfNamed: boolean;
  /**
   * How long a request may wait for a server that is starting, in milliseconds: for clients that give up at a 503, a little less than
   * they wait for an answer. 0 for clients that repeat the request.
   */
  readonly holdMs: number;
  /** Whether a body without the keys of any dialect is in this dialect. `named`: the server is configured to prefer this dialect. */
  claims(body: unknown, named: boolean): boolean;
  /** @throws RequestError for a body that the original server refuses, or that is over the limits. */
  parse(body: unknown, limits: RequestLimits): Plan;
}

export type SearchDialect = Dialect & { readonly client: DialectClient };

type DialectParts<Request extends TSchema, Reply extends TSchema> = Pick<
  Dialect,
  'name' | 'path' | 'summary' | 'example'
> &
  Partial<Omit<Dialect, 'request' | 'reply' | 'parse' | 'statusOf'>> & {
    readonly request: Request;
    readonly reply: Reply;
    /** Largest length of any list, in addition to the server's limit. */
    readonly maxItems?: number;
    /** Refuses bodies that the schema cannot describe, before they are parsed. */
    check?(body: unknown): void;
    plan(request: Static<Request>, limits: RequestLimits): Plan;
  };

/** A dialect with the types of its schemas, for the TypeScript client. */
export type TypedDialect<Request extends TSchema, Reply extends TSchema> = Dialect & {
  readonly request: Request;
  readonly reply: Reply;
};

/**
 * Defines a dialect with the usual errors. Without `claims`, a dialect with `keys` claims other bodies only if it is preferred, and one
 * without `keys` claims every body: right for a dialect that is alone on its path, the last of a shared path, or only used if named.
 */
export function defineDialect<Request extends TSchema, Reply extends TSchema>(
  parts: DialectParts<Request, Reply>,
): TypedDialect<Request, Reply> {
  const { request, plan, check, maxItems = Number.POSITIVE_INFINITY, ...rest } = parts;
  return {
    method: 'POST',
    onlyIfNamed: false,
    holdMs: 0,
    claims: rest.keys === undefined ? () => true : (_, named) => named,
    projects: [],
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
