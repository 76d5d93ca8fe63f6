import { constants } from 'node:buffer';
import type { FastifyBaseLogger } from 'fastify';
import { TrawlError } from '../base/errors.ts';
import { defined } from '../base/objects.ts';
import { TRUNCATE_SIDES, type TruncateSide } from '../encoder/text-encoder.ts';
import type { Filter } from '../engine/filter/filter.ts';
import type { WritableIndexes } from '../index/document-store/writable-indexes.ts';
import type { RerankSettings } from '../search/calls/retrieve-call.ts';
import { type HybridOptions, hybridFault } from '../search/hybrid/hybrid-settings.ts';
import { BM25_ORDERS, type Bm25Order, SEARCH_MODES, type SearchMode } from '../search/search-mode.ts';
import type { AccessKeys } from './access/access-keys.ts';
import type { McpToolConfig } from './mcp/mcp-config.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import type { QueryRecord } from './recording/recorded-search.ts';
import type { SearchHook } from './search-hook.ts';
import type { RequestTracer } from './tracing/tracer.ts';

/** Defaults and limits of searches. */
export interface RequestLimits {
  /** Hits per query if the request does not set it (absent, null or 0). */
  readonly topk: number;
  /** What to shorten if a question and its query together exceed the model's token limit, unless the request sets it. */
  readonly truncate: TruncateSide;
  /** How passages are ranked, unless the request sets it. Null: the default of each index. */
  readonly mode: SearchMode | null;
  /** How BM25 hits with equal scores are ordered, unless the request sets it. */
  readonly bm25Order: Bm25Order;
  /** How hybrid search fuses its lists, unless the request sets it. Settings that are absent have their defaults. */
  readonly hybrid: HybridOptions;
  /** How hits are reranked, unless the request sets it; needs retrievers with a reranker. Null: only if the request asks for it. */
  readonly rerank: RerankSettings | null;
  /** Largest number of queries in one request. */
  readonly maxQueries: number;
  /** Longest text in a request, in UTF-16 units. A shorter text that exceeds the model's token limit is truncated. */
  readonly maxQueryChars: number;
  /** Largest number of hits per query. */
  readonly maxK: number;
  /** Largest number of hits in one response (queries × hits per query). A response is built in memory before it is sent. */
  readonly maxHits: number;
}

/** Options of the HTTP server. Limits reserve no memory. */
export interface ServerConfig extends RequestLimits {
  /** The passages that requests may find, in addition to the filter of a request. Null: all. */
  readonly filter: Filter | null;
  /**
   * Names of views of the indexes (`OpenRetrieverOptions.views`): requests find only passages that are in all of them, and in the views
   * of their API key and path.
   */
  readonly views: readonly string[];
  /** Largest request body in bytes. A low limit refuses large batches; a high limit lets a request use that much memory. */
  readonly maxBodyBytes: number;
  /**
   * Limit of the bytes of all responses that clients have not read yet. At the limit, the server refuses new requests. A low limit
   * refuses requests because of slow readers; a high limit lets slow readers fill the memory.
   */
  readonly maxReplyBytesInFlight: number;
  /**
   * Limit of the bytes of all request bodies that are being received. At the limit, the server refuses new requests; at twice the
   * limit, it disconnects clients that are sending.
   */
  readonly maxBodyBytesInFlight: number;
  /** Largest number of open connections; the server closes further ones immediately. */
  readonly maxConnections: number;
  /**
   * How long a client may read no byte of a response that is being sent before it is disconnected, in milliseconds. Waiting for a
   * response does not count.
   */
  readonly writeStallMs: number;
  /**
   * How long an idle connection stays open, in milliseconds. A trainer's connections are idle for minutes while it updates its
   * weights, and Search-R1's clients fail if a connection closes just when they reuse it. An idle connection costs a few kilobytes.
   */
  readonly keepAliveMs: number;
  /** How long a client may take to send a request, in milliseconds. Does not limit the response. */
  readonly receiveTimeoutMs: number;
  /** How long a client may take to send the headers of a request after it connected, in milliseconds. */
  readonly headersTimeoutMs: number;
  /**
   * Load shedding: the server refuses a request whose expected wait is longer than this, in milliseconds; 0 disables it. Only for
   * clients that retry; for others, waiting is better than an error.
   */
  readonly shedAfterMs: number;
  /**
   * Time limit of a request from its arrival, in milliseconds, unless its header `x-request-timeout-ms` sets another. With 0, a
   * request waits until its client disconnects.
   */
  readonly deadlineMs: number;
  /**
   * How long a request may wait for a server that is starting, in milliseconds, if the clients of its dialect give up at a 503; at most
   * as long as they wait for an answer. With 0, every request is refused until the server is ready.
   */
  readonly holdMs: number;
  /** Smallest `retry-after` of a 503, in seconds. */
  readonly retryAfterS: number;
  /** Dialects of POST /retrieve and POST /search to prefer if several claim a body, most preferred first. */
  readonly dialects: readonly string[];
  /** Serves POST /mcp unless null. */
  readonly mcp: McpConfig | null;
  /** Null disables the log. */
  readonly logger: FastifyBaseLogger | null;
  /** Logs one of this many responses. Errors and responses with failed queries are always logged. */
  readonly logEvery: number;
  /** Shared metrics; null gives the server its own. */
  readonly metrics: ServerMetrics | null;
  /** Records queries and their hits; null disables it. */
  readonly record: QueryRecord | null;
  /** Takes every request for a trace; null disables it. */
  readonly tracer: RequestTracer | null;
  /** Changes, delays and fails searches on purpose; null disables it. */
  readonly searchHook: SearchHook | null;
  /** The indexes that clients make and fill over Elasticsearch's interface; null if they may not. */
  readonly writable: WritableIndexes | null;
  /** Accepted API keys; null if the server requires none. */
  readonly keys: AccessKeys | null;
  /** Origins whose pages may read responses; `*` means every origin. */
  readonly corsOrigins: readonly string[];
  /** Null for plain HTTP. */
  readonly tls: TlsPem | null;
}

export interface McpConfig extends McpToolConfig {
  /** The accepted names in `host` and `origin`, in addition to the names of loopback. */
  readonly hosts: readonly string[];
}

/** Contents of PEM files. */
export interface TlsPem {
  /** The certificate chain. */
  readonly cert: string;
  readonly key: string;
}

export const DEFAULT_SERVER_CONFIG: ServerConfig = Object.freeze({
  topk: 3,
  truncate: 'tail',
  mode: null,
  filter: null,
  views: Object.freeze([]),
  bm25Order: 'row',
  hybrid: Object.freeze({}),
  rerank: null,
  maxBodyBytes: 16 * 1024 * 1024,
  maxQueries: 20_000,
  maxQueryChars: 1_000_000,
  maxK: 2_048,
  maxHits: 500_000,
  maxReplyBytesInFlight: 1024 ** 3,
  maxBodyBytesInFlight: 512 * 1024 ** 2,
  maxConnections: 16_384,
  writeStallMs: 120_000,
  keepAliveMs: 3_600_000,
  receiveTimeoutMs: 300_000,
  headersTimeoutMs: 60_000,
  shedAfterMs: 0,
  deadlineMs: 0,
  holdMs: 3_600_000,
  retryAfterS: 2,
  dialects: Object.freeze([]),
  mcp: null,
  logger: null,
  logEvery: 1,
  metrics: null,
  record: null,
  tracer: null,
  searchHook: null,
  writable: null,
  keys: null,
  corsOrigins: Object.freeze([]),
  tls: null,
});

/** Options that 0 disables. */
const MAY_BE_ZERO: readonly string[] = ['shedAfterMs', 'deadlineMs', 'holdMs'];

/** Times that become delays of timers. Node fires a timer with a longer delay than `MAX_TIMER_MS` at once. */
const TIMERS = ['writeStallMs', 'keepAliveMs', 'receiveTimeoutMs', 'headersTimeoutMs', 'deadlineMs', 'holdMs'] as const;
const MAX_TIMER_MS = 2 ** 31 - 1;

/** @throws TrawlError CONFIG_INVALID. */
export function resolveServerConfig(options: Partial<ServerConfig> = {}): ServerConfig {
  const config = { ...DEFAULT_SERVER_CONFIG, ...defined(options) };
  const fault = configFault(config);
  if (fault !== undefined) throw new TrawlError('CONFIG_INVALID', fault);
  return Object.freeze(config);
}

/** What is wrong with the first wrong option; undefined if all are right. */
function configFault(config: ServerConfig): string | undefined {
  const unknown = Object.keys(config).find((name) => !Object.hasOwn(DEFAULT_SERVER_CONFIG, name));
  if (unknown !== undefined) return `${unknown} is not an option of the server.`;
  for (const [name, standard] of Object.entries(DEFAULT_SERVER_CONFIG)) {
    if (typeof standard !== 'number') continue;
    const value = config[name as keyof ServerConfig];
    const least = MAY_BE_ZERO.includes(name) ? 0 : 1;
    if (!Number.isSafeInteger(value) || (value as number) < least) {
      return `${name} is ${String(value)}; expected a whole number of at least ${least}.`;
    }
  }
  const { topk, maxK, rerank, maxBodyBytes } = config;
  const long = TIMERS.find((name) => config[name] > MAX_TIMER_MS);
  if (long !== undefined) return `${long} is ${config[long]}; expected at most ${MAX_TIMER_MS} (24 days).`;
  if (topk > maxK) return `topk is ${topk}, but maxK is ${maxK}. Lower topk or raise maxK.`;
  const origin = config.corsOrigins.find((each) => !isOrigin(each));
  if (origin !== undefined) return originFault(origin);
  for (const [name, value, choices] of [
    ['truncate', config.truncate, TRUNCATE_SIDES],
    ['mode', config.mode ?? SEARCH_MODES[0], SEARCH_MODES],
    ['bm25Order', config.bm25Order, BM25_ORDERS],
  ] as const) {
    if (!(choices as readonly string[]).includes(value)) {
      return `${name} is ${JSON.stringify(value)}; expected ${choices.join(' or ')}.`;
    }
  }
  if (rerank !== null && !(Number.isSafeInteger(rerank.depth) && rerank.depth >= 1 && rerank.depth <= maxK)) {
    return `rerank.depth (--rerank-depth) is ${rerank.depth}; expected a whole number from 1 to maxK (--max-k), ${maxK}.`;
  }
  // A body is decoded into one string before it is parsed.
  if (maxBodyBytes > constants.MAX_STRING_LENGTH) {
    return `maxBodyBytes is ${maxBodyBytes}; expected at most ${constants.MAX_STRING_LENGTH}, Node's longest string.`;
  }
  return hybridFault(config.hybrid);
}

/** Whether a browser could send this text as an origin. Any other text would silently match no page. */
function isOrigin(text: string): boolean {
  if (text === '*' || text === 'null') return true;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]+$/.test(text)) return false;
  return !/^https?:/.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

function originFault(text: string): string {
  const meant = URL.canParse(text) && /^https?:/i.test(text) ? ` Did you mean ${new URL(text).origin}?` : '';
  return `corsOrigins (--cors-origin) has ${JSON.stringify(text)}; expected scheme://host, or scheme://host:port for a port other than the default, or *.${meant}`;
}
