import { constants } from 'node:buffer';
import type { FastifyBaseLogger } from 'fastify';
import { TrawlError } from '../errors.ts';
import type { AccessKeys } from './access-keys.ts';
import type { QueryRecord } from './observed-retriever.ts';
import type { ServerMetrics } from './server-metrics.ts';

/** What the HTTP layer can be told. Sizes are limits at which a request is refused, not reservations. */
export interface ServerConfig {
  /** Hits per query when a request names none (absent, null or 0). */
  readonly topk: number;
  /** Largest request body in bytes. Too little refuses big batches, too much lets one request hold that much memory. */
  readonly maxBodyBytes: number;
  /** Most queries in one request. */
  readonly maxQueries: number;
  /** Longest text in a request, in UTF-16 units. What is beyond the model's limit is cut, not refused. */
  readonly maxQueryChars: number;
  /** Most hits per query. */
  readonly maxK: number;
  /** Most hits in one reply, queries × hits per query: a reply is held in memory before it is sent. */
  readonly maxHits: number;
  /**
   * Bytes of replies waiting to be taken by their clients, all requests together, beyond which new requests are refused.
   * Too little refuses clients that merely read slowly, too much lets them fill the memory.
   */
  readonly maxReplyBytesInFlight: number;
  /**
   * Bytes of request bodies that are being received, all requests together, beyond which new requests are refused; bodies
   * that arrive beyond twice as many are cut off.
   */
  readonly maxBodyBytesInFlight: number;
  /** Most connections; further ones are closed as they come. */
  readonly maxConnections: number;
  /**
   * How long a client may read nothing of an answer that is being sent to it, in milliseconds; then its connection is cut.
   * A client that waits for its answer is not meant.
   */
  readonly writeStallMs: number;
  /**
   * How long an idle connection stays open, in milliseconds. A trainer's connections rest while it updates its weights,
   * often for many minutes; closing one at the moment it is used again is an error that Search-R1's family does not
   * survive. An idle connection costs some kilobytes, so an hour is cheap.
   */
  readonly keepAliveMs: number;
  /** How long a client may take to send its request, in milliseconds. How long an answer takes is not limited. */
  readonly receiveTimeoutMs: number;
  /** How long a client may take to send the headers of a request, or its first one, in milliseconds. */
  readonly headersTimeoutMs: number;
  /**
   * Expected wait in milliseconds beyond which a request is refused at once; 0: never. For clients that try again: to
   * others waiting is better than an error.
   */
  readonly shedAfterMs: number;
  /**
   * Milliseconds from a request's arrival after which it is given up, unless it names its own in `x-request-timeout-ms`;
   * 0: it waits until its client hangs up.
   */
  readonly deadlineMs: number;
  /** Seconds after which a refused client may try again. */
  readonly retryAfterS: number;
  /**
   * Dialects that are preferred where requests could be several ones', most preferred first: names of those that share
   * POST /retrieve.
   */
  readonly dialects: readonly string[];
  /**
   * Whether POST /mcp is there, for assistants. `hosts` are names, besides those of loopback, by which it may be asked for
   * and whose pages may ask.
   */
  readonly mcp: { readonly hosts: readonly string[] } | null;
  /** Where log lines go; null for silence. */
  readonly logger: FastifyBaseLogger | null;
  /** One of so many answers gets a log line; those with failed queries, and all errors, always do. */
  readonly logEvery: number;
  /** Where counts go; null for some of the server's own. */
  readonly metrics: ServerMetrics | null;
  /** Where queries and what was found for them are kept; null for nowhere. */
  readonly record: QueryRecord | null;
  /** The keys that are asked for; null for none. */
  readonly keys: AccessKeys | null;
  /** Origins whose pages may read answers; `*` is every one. */
  readonly corsOrigins: readonly string[];
  /** Certificate chain and private key in PEM; null for plain HTTP. */
  readonly tls: TlsFiles | null;
}

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export const DEFAULT_SERVER_CONFIG: ServerConfig = Object.freeze({
  topk: 3,
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
  retryAfterS: 2,
  dialects: Object.freeze([]),
  mcp: null,
  logger: null,
  logEvery: 1,
  metrics: null,
  record: null,
  keys: null,
  corsOrigins: Object.freeze([]),
  tls: null,
});

const NOT_NUMBERS: readonly string[] = [
  'logger',
  'dialects',
  'mcp',
  'metrics',
  'record',
  'keys',
  'corsOrigins',
  'tls',
] satisfies (keyof ServerConfig)[];

/** Where zero switches something off. */
const MAY_BE_ZERO: readonly string[] = ['shedAfterMs', 'deadlineMs'];

/** A timer of more milliseconds fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Defaults filled in, values checked, frozen. */
export function resolveServerConfig(options: Partial<ServerConfig> = {}): ServerConfig {
  const config = { ...DEFAULT_SERVER_CONFIG, ...options };
  for (const [name, value] of Object.entries(config)) {
    if (NOT_NUMBERS.includes(name)) continue;
    const least = MAY_BE_ZERO.includes(name) ? 0 : 1;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) {
      throw new TrawlError(
        'CONFIG_INVALID',
        `${name} is ${String(value)}; it must be a whole number of at least ${least}.`,
      );
    }
  }
  for (const name of ['writeStallMs', 'keepAliveMs', 'receiveTimeoutMs', 'headersTimeoutMs', 'deadlineMs'] as const) {
    if (config[name] <= LONGEST_TIMER_MS) continue;
    throw new TrawlError(
      'CONFIG_INVALID',
      `${name} is ${config[name]}; it must be at most ${LONGEST_TIMER_MS} (24 days).`,
    );
  }
  if (config.topk > config.maxK) {
    throw new TrawlError('CONFIG_INVALID', `topk is ${config.topk}, which is more than maxK allows (${config.maxK}).`);
  }
  for (const origin of config.corsOrigins) if (!isOrigin(origin)) throw noOrigin(origin);
  // A body becomes one string before it is parsed.
  if (config.maxBodyBytes > constants.MAX_STRING_LENGTH) {
    throw new TrawlError(
      'CONFIG_INVALID',
      `maxBodyBytes is ${config.maxBodyBytes}; Node can read at most ${constants.MAX_STRING_LENGTH} bytes as one text.`,
    );
  }
  return Object.freeze(config);
}

/** Whether a browser could send it: any other text would match no page, and nothing would say so. */
function isOrigin(text: string): boolean {
  if (text === '*' || text === 'null') return true;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]+$/.test(text)) return false;
  return !/^https?:/.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

function noOrigin(text: string): TrawlError {
  const meant = URL.canParse(text) && /^https?:/i.test(text) ? ` Is ${new URL(text).origin} meant?` : '';
  return new TrawlError(
    'CONFIG_INVALID',
    `corsOrigins (--cors-origin) has ${JSON.stringify(text)}; an origin is scheme://host, with a port where it is not the usual one, and nothing behind it, as https://example.org, or *.${meant}`,
  );
}
