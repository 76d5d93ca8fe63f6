import { DEFAULT_SERVER_CONFIG } from '../src/http/server-config.ts';
import type { OptionTable } from '../src/options/option-spec.ts';
import { DEFAULT_MAX_WAITING_BYTES } from '../src/retrieval/bounded-retriever.ts';
import { RETRIEVER_OPTIONS } from './retriever-options.ts';

export const MIB = 1024 * 1024;

/** Options of `trawl serve`. */
export const SERVE_OPTIONS = {
  index: {
    kind: 'list',
    value: 'NAME=DIR',
    help: 'A further index, and what requests call it. A directory without a name has that of its folder.',
  },
  warm: {
    kind: 'flag',
    help: 'Read what a search wants in memory from the disk before requests are answered, at the start and at each reload. Without it the first queries read it, slowly.',
  },
  host: {
    kind: 'string',
    default: '127.0.0.1',
    help: 'Address to listen on. 0.0.0.0 is every network of this machine.',
  },
  port: {
    kind: 'integer',
    min: 0,
    max: 65_535,
    default: 8000,
    help: 'Port to listen on; 0 lets the system choose one.',
  },
  listen: {
    kind: 'list',
    value: '[HOST:]PORT[=DIALECT]',
    help: 'A further address, for clients that have their port fixed, on which DIALECT is preferred: 6002=zerosearch, 5003. :shed-after-ms=N and :deadline-ms=N behind it hold for this address alone: 8001=search-r1:deadline-ms=25000.',
  },
  'address-dir': {
    kind: 'string',
    value: 'DIR',
    help: 'Write the address into DIR/Host…_IP….txt once requests are answered, where the clients of ASearcher and RLinf look for it ($RAG_SERVER_ADDR_DIR), and remove it at the stop.',
  },
  dialect: {
    kind: 'list',
    value: 'NAME',
    help: 'Dialect to prefer where a request to POST /retrieve could be that of several: zerosearch, rllm, rllm-legacy, stepsearch, asearcher, skyrl or search-r1. The most preferred comes first. docs/dialects.md has what each one takes.',
  },
  mcp: {
    kind: 'flag',
    help: 'Also answer assistants at /mcp (Model Context Protocol, streamable HTTP) with the tools search and fetch.',
  },
  'mcp-host': {
    kind: 'list',
    value: 'NAME',
    help: 'With --mcp: a host name, besides localhost, by which /mcp may be asked for through a proxy, and whose pages may ask.',
  },
  topk: {
    kind: 'integer',
    min: 1,
    default: DEFAULT_SERVER_CONFIG.topk,
    help: 'Passages per query for requests that do not say (topk absent, null or 0).',
  },
  'max-k': {
    kind: 'integer',
    min: 1,
    default: DEFAULT_SERVER_CONFIG.maxK,
    help: 'Most passages per query a request may ask for; more is refused with 422. Large values make large replies.',
  },
  'max-queries': {
    kind: 'integer',
    min: 1,
    default: DEFAULT_SERVER_CONFIG.maxQueries,
    help: 'Most queries in one request; more is refused with 413.',
  },
  'max-query-chars': {
    kind: 'integer',
    min: 1,
    default: DEFAULT_SERVER_CONFIG.maxQueryChars,
    help: 'Longest text in a request, in characters; a longer one is refused with 413. What is beyond the limit of the model in tokens is cut, not refused.',
  },
  'max-body-mib': {
    kind: 'integer',
    min: 1,
    // A body becomes one string, and Node's longest is a little under 512 MiB.
    max: 511,
    default: DEFAULT_SERVER_CONFIG.maxBodyBytes / MIB,
    help: 'Largest request body in MiB; a larger one is refused with 413.',
  },
  'max-waiting-mib': {
    kind: 'integer',
    min: 1,
    default: DEFAULT_MAX_WAITING_BYTES / MIB,
    help: 'MiB of waiting queries and their expected answers beyond which requests are refused with 503 and Retry-After. Up to it they wait, however long. Too little refuses bursts that would be answered in seconds; too much lets them fill the memory.',
  },
  'shed-after-ms': {
    kind: 'integer',
    min: 0,
    max: 999_999_999,
    default: DEFAULT_SERVER_CONFIG.shedAfterMs,
    help: 'Refuse a request with 503 and Retry-After where it would have to wait longer than so many milliseconds. 0: let it wait. For clients that try again; those of Search-R1 and RAG-R1 take any error as the end.',
  },
  'deadline-ms': {
    kind: 'integer',
    min: 0,
    max: 999_999_999,
    default: DEFAULT_SERVER_CONFIG.deadlineMs,
    help: 'Give a request up with 503 after so many milliseconds, unless its header x-request-timeout-ms names others. 0: it waits until its client hangs up.',
  },
  'cache-bytes': {
    kind: 'integer',
    min: 0,
    default: 128 * MIB,
    help: 'Bytes of finished answers that are kept for queries that come again, at two a character. 0 keeps none.',
  },
  'single-flight': {
    kind: 'flag',
    default: true,
    help: 'Compute each of several equal queries that are under way at the same time, in place of one for all.',
  },
  'keys-file': {
    kind: 'string',
    value: 'FILE',
    help: 'Keys that callers have to send as "authorization: Bearer KEY": lines of read:KEY (searching, metrics) and admin:KEY (that and /admin), at least 16 characters each. Without it the keys of the environment variable TRAWL_API_KEYS are taken, separated by commas. Without any, everybody who reaches the port may search.',
  },
  'tls-cert': {
    kind: 'string',
    value: 'FILE',
    help: 'Certificate chain in PEM: HTTPS in place of HTTP, on every address.',
  },
  'tls-key': { kind: 'string', value: 'FILE', help: 'Private key of --tls-cert in PEM, without a passphrase.' },
  'cors-origin': {
    kind: 'list',
    value: 'ORIGIN',
    help: 'Origin whose pages may read answers in a browser, as https://example.org; * is every one. Default: none.',
  },
  'max-connections': {
    kind: 'integer',
    min: 1,
    default: DEFAULT_SERVER_CONFIG.maxConnections,
    help: 'Most open connections; further ones are closed as they come. A connection needs a file descriptor (ulimit -n).',
  },
  'stall-s': {
    kind: 'integer',
    min: 1,
    max: 86_400,
    default: DEFAULT_SERVER_CONFIG.writeStallMs / 1000,
    help: 'Seconds for which a client may take nothing of an answer that is being sent to it; then its connection is cut. Waiting for an answer is not limited.',
  },
  'grace-s': {
    kind: 'integer',
    min: 0,
    max: 3600,
    default: 30,
    help: 'Seconds that running requests get to end after SIGTERM or Ctrl-C. Then their connections are cut. A second signal stops at once.',
  },
  'log-every': {
    kind: 'integer',
    min: 1,
    default: DEFAULT_SERVER_CONFIG.logEvery,
    help: 'One of N answers gets a line in the log. Errors, and answers with failed queries, always get theirs.',
  },
  record: {
    kind: 'string',
    value: 'FILE',
    help: 'Keep every query and the ids found for it in FILE, as JSON lines, for replay and for mining. Readable by its owner alone. What cannot be written as fast as it comes is dropped and counted (/metrics).',
  },
  'record-mib': {
    kind: 'integer',
    min: 1,
    max: 1_048_576,
    default: 256,
    help: 'Size in MiB at which the file of --record is renamed to FILE.1 (that to FILE.2, …) and a new one begun.',
  },
  'record-files': {
    kind: 'integer',
    min: 0,
    max: 10_000,
    default: 8,
    help: 'Renamed files that --record keeps; older ones are overwritten.',
  },
  ...RETRIEVER_OPTIONS,
} as const satisfies OptionTable;
