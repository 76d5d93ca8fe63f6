import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { TRUNCATE_SIDES } from '../../src/encoder/text-encoder.ts';
import { DEFAULT_MAX_WAITING_BYTES } from '../../src/search/admission.ts';
import { BM25_ORDERS, SEARCH_MODES } from '../../src/search/search-mode.ts';
import { NAMEABLE_DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/server/server-config.ts';
import { UNRECORDED } from '../../training/replay/replay-retriever.ts';
import { FILTER_OPTION } from '../options/filter-option.ts';
import { HYBRID_OPTIONS } from '../options/hybrid-options.ts';
import { MCP_OPTIONS } from '../options/mcp-options.ts';
import * as option from '../options/option.ts';
import { RANKING_OPTIONS } from '../options/ranking-options.ts';
import { RERANK_OPTIONS } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS } from '../options/retriever-options.ts';
import { VIEW_OPTIONS } from '../options/view-options.ts';
import type { CommandContext } from '../program/command.ts';
import { PERTURB_OPTIONS } from './perturb-options.ts';

export const MIB = 1024 * 1024;

/** Options of `trawl serve`. */
export const SERVE_OPTIONS = {
  index: option.list(
    'NAME=DIR',
    "A further index directory and its name in requests. Without NAME=, the folder's name is used.",
  ),
  group: option.list(
    'NAME=INDEX,INDEX',
    'A name for several indexes, which requests can use like an index: the indexes are searched as one. Repeat the option for several groups.',
  ),
  writable: option.text(
    'DIR',
    "Folder of indexes that clients make and fill with Elasticsearch's requests (docs/elasticsearch.md#fill-an-index-over-http): PUT /NAME, _bulk, _refresh. Needs --dialect elasticsearch or --listen PORT=elasticsearch. The indexes are served again at the next start; no other index is needed.",
  ),
  replay: option.text(
    'BUNDLE',
    'Serve the recorded answers of a bundle (trawl replay RECORDS --bundle BUNDLE) in place of an index: every query that was recorded gets the recorded passages, in every dialect, without the index and its encoder (docs/replay.md). With --rerank NAME, requests that do not ask for reranking get recorded reranked answers; no reranker is loaded.',
  ),
  unrecorded: option.choice(
    { choices: UNRECORDED, default: 'error' },
    'With --replay: what a query gets that was not recorded. error: 404 with the code NOT_RECORDED; empty: no passages.',
  ),
  plan: option.flag(
    'Serve nothing: print the memory that searches need, and their latency and throughput as expected from a trial of some seconds. Exit code 3 if they need more memory than there is.',
  ),
  warm: option.flag(
    'Read the index files into memory before the server answers requests, at the start and at each reload. Without it, the first queries are slow.',
  ),
  host: option.text(
    { default: '127.0.0.1' },
    'Address to listen on. 0.0.0.0 listens on every network of this machine.',
  ),
  port: option.integer({ min: 0, max: 65_535, default: 8000 }, 'Port to listen on; 0 lets the system choose one.'),
  listen: option.list(
    '[HOST:]PORT[=DIALECT]',
    'Listen on a further address, for clients with a fixed port (5003). The server prefers DIALECT for requests to this address (6002=zerosearch). :topk=N, :shed-after-ms=N, :deadline-ms=N, :truncate=SIDE, :mode=MODE, :bm25-order=ORDER, :hybrid-fusion=FUSION, :hybrid-weights=dense=N,bm25=N, :hybrid-depth=N, :rerank-depth=N and :perturb=NAME=RATE,… (or :perturb=none) set these options for this address only; :view=NAME and, at the end, :filter=EXPRESSION limit it, in addition to --view and --filter (8001=search-r1:deadline-ms=25000).',
  ),
  'address-dir': option.text(
    'DIR',
    'Write the address to DIR/Host…_IP….txt when the server is ready, and remove the file when the server stops. The clients of ASearcher and RLinf read it from $RAG_SERVER_ADDR_DIR.',
  ),
  dialect: option.list(
    'NAME',
    `Preferred dialect for requests of POST /retrieve and POST /search that match several dialects: ${NAMEABLE_DIALECTS.slice(0, -1).join(', ')} or ${NAMEABLE_DIALECTS.at(-1)}. Repeat it for a second choice. elasticsearch adds the routes of Elasticsearch (docs/elasticsearch.md). docs/dialects.md describes the dialects.`,
  ),
  mcp: option.flag(
    'Also serve tools to assistants at /mcp (Model Context Protocol: streamable HTTP, or an event stream): search and fetch, or the tools of --mcp-tools.',
  ),
  ...MCP_OPTIONS,
  'mcp-host': option.list(
    'NAME',
    'With --mcp: a host name, in addition to localhost, that requests to /mcp may use, such as the name of a proxy. Web pages of that host may call /mcp too.',
  ),
  topk: option.integer(
    { min: 1, default: DEFAULT_SERVER_CONFIG.topk },
    'Passages per query if the request does not set it (topk absent, null or 0).',
  ),
  truncate: option.choice(
    { choices: TRUNCATE_SIDES, default: DEFAULT_SERVER_CONFIG.truncate },
    "What to shorten if a question and its query together exceed the model's token limit: tail (the end of the query) or question. Requests can set it themselves.",
  ),
  mode: option.choice(
    SEARCH_MODES,
    'How passages are ranked: dense (by their vectors), bm25 (by their words; needs an index with --bm25) or hybrid (by both lists, fused; needs both). Requests can set it themselves. With bm25 no encoder is loaded, unless a --listen address has another mode. Default: dense if the index has vectors.',
  ),
  filter: {
    ...FILTER_OPTION,
    help: `${FILTER_OPTION.help} It holds for every request, also for passages by id; requests can narrow it by filters of their own, but not leave it.`,
  },
  views: {
    ...VIEW_OPTIONS.views,
    help: `${VIEW_OPTIONS.views.help} A view limits the requests of the API keys that name it (read:KEY view=NAME in --keys-file), of an address (--view, :view=NAME of --listen) or of a path (/views/NAME/…). SIGHUP reads the file again.`,
  },
  view: {
    ...VIEW_OPTIONS.view,
    help: 'With --views: a view that limits the requests to all addresses. Requests can narrow it, but not leave it.',
  },
  ...HYBRID_OPTIONS,
  'bm25-order': option.choice(
    { choices: BM25_ORDERS, default: DEFAULT_SERVER_CONFIG.bm25Order },
    "How hits of BM25 with equal scores are ordered. row: by row, with exact scores; pyserini: by id as text, with Pyserini's rounded scores. Requests of /v1/search can set it themselves.",
  ),
  'bm25-weights': {
    ...RANKING_OPTIONS['bm25-weights'],
    help: 'For indexes made with --bm25-fields title,text: the weights of the fields, such as title=2,text=1. The best field of a passage gives its score. 0: the field is not searched. Default: 1. Requests of /v1/search can set it themselves.',
  },
  'tie-breaker': {
    ...RANKING_OPTIONS['tie-breaker'],
    help: 'For indexes made with --bm25-fields title,text: the share of the score in the other field that is added, from 0 to 1. Default: 0; 1 adds both scores. Requests of /v1/search can set it themselves.',
  },
  ...RERANK_OPTIONS,
  'rerank-depth': {
    ...RERANK_OPTIONS['rerank-depth'],
    min: 0,
    help: 'With --rerank: passages per query that the search finds and the reranker scores; at least as many as are asked for. Requests of /v1/search can set it themselves. 0: only requests that ask for it are reranked.',
  },
  'rerank-allow-failure': option.flag(
    'With --rerank: if the reranker fails on a query, answer with the passages in the order of the search. Without it, the query fails. Requests of /v1/search can set it themselves.',
  ),
  'max-k': option.integer(
    { min: 1, default: DEFAULT_SERVER_CONFIG.maxK },
    'Largest number of passages that a request can ask for per query. A request for more is refused with 422. The limit bounds the size of responses.',
  ),
  'max-queries': option.integer(
    { min: 1, default: DEFAULT_SERVER_CONFIG.maxQueries },
    'Largest number of queries in one request. A request with more is refused with 413.',
  ),
  'max-query-chars': option.integer(
    { min: 1, default: DEFAULT_SERVER_CONFIG.maxQueryChars },
    "Longest query in UTF-16 units (a character outside the Basic Multilingual Plane, such as an emoji, counts as two). A request with a longer query is refused with 413. A query that exceeds only the model's token limit is truncated, not refused.",
  ),
  'max-body-mib': option.integer(
    // A body becomes one string, and Node's longest string is just under 512 MiB.
    { min: 1, max: 511, default: DEFAULT_SERVER_CONFIG.maxBodyBytes / MIB },
    'Largest request body in MiB. A larger body is refused with 413.',
  ),
  'max-waiting-mib': option.integer(
    { min: 1, default: DEFAULT_MAX_WAITING_BYTES / MIB },
    'Memory for waiting queries and their expected answers, in MiB. While they need more, further requests are refused with 503 and Retry-After. A lower limit refuses bursts that the server could answer within seconds; a higher limit allows bursts to use more memory.',
  ),
  'shed-after-ms': option.integer(
    { min: 0, max: 999_999_999, default: DEFAULT_SERVER_CONFIG.shedAfterMs },
    'Refuse a request with 503 and Retry-After if it would wait longer than N milliseconds; with 0, every request waits. Only for clients that retry: the clients of Search-R1 and RAG-R1 stop on any error.',
  ),
  'hold-s': option.integer(
    { min: 0, max: 86_400, default: DEFAULT_SERVER_CONFIG.holdMs / 1000 },
    "While the server starts, hold requests of clients that would give up at a 503 (Search-R1's and others, docs/operations.md) for at most N seconds, and never longer than the client waits for an answer. With 0, the server answers 503 until it is ready.",
  ),
  'deadline-ms': option.integer(
    { min: 0, max: 999_999_999, default: DEFAULT_SERVER_CONFIG.deadlineMs },
    'Time limit of a request in milliseconds, after which the server answers 503; the header x-request-timeout-ms of a request sets another limit. With 0, a request waits until its client disconnects.',
  ),
  'cache-bytes': option.integer(
    { min: 0, default: 128 * MIB },
    'Size in bytes of the answer cache, which answers repeated queries without a search. A character counts 2 bytes. 0: no cache.',
  ),
  // A flag with the default true is shown as --no-single-flight, so the help describes the negated option.
  'single-flight': option.flag(
    'Compute equal queries separately, even if they are in flight at the same time. By default they are computed once.',
    { default: true },
  ),
  'keys-file': option.text(
    'FILE',
    'File of API keys, one per line: read:KEY (search and metrics) or admin:KEY (also /admin), with at least 16 characters each; view=NAME after a key binds it to a view. Clients send "authorization: Bearer KEY". Default: the comma-separated keys in the environment variable TRAWL_API_KEYS. Without keys, every client that reaches the port may search.',
  ),
  'tls-cert': option.text('FILE', 'Certificate chain in PEM. Every address then serves HTTPS instead of HTTP.'),
  'tls-key': option.text('FILE', 'Private key of --tls-cert in PEM, without a passphrase.'),
  'cors-origin': option.list(
    'ORIGIN',
    'Origin whose web pages may read responses, such as https://example.org; * allows every origin. Default: none.',
  ),
  'max-connections': option.integer(
    { min: 1, default: DEFAULT_SERVER_CONFIG.maxConnections },
    'Largest number of open connections; further ones are closed immediately. Each needs a file descriptor (ulimit -n).',
  ),
  'stall-s': option.integer(
    { min: 1, max: 86_400, default: DEFAULT_SERVER_CONFIG.writeStallMs / 1000 },
    'Disconnect a client that reads no byte of its response for N seconds. Waiting for a response is not limited.',
  ),
  'grace-s': option.integer(
    { min: 0, max: 3600, default: 30 },
    'Seconds that running requests have to finish after SIGTERM or Ctrl-C; then the server disconnects their clients. A second signal stops the server immediately.',
  ),
  'log-every': option.integer(
    { min: 1, default: DEFAULT_SERVER_CONFIG.logEvery },
    'Log one of N responses. Errors and responses with failed queries are always logged.',
  ),
  record: option.text(
    'FILE',
    'Append every query and the ids of its hits to FILE as JSON lines, for replay or for mining training data, with the trajectory, turn and policy that requests name (docs/recording.md). Only its owner can read the file. Lines that cannot be written fast enough are dropped and counted (/metrics).',
  ),
  'record-mib': option.integer(
    { min: 1, max: 1_048_576, default: 256 },
    'Size in MiB at which --record renames the file to FILE.1 (FILE.1 to FILE.2, …) and starts a new one.',
  ),
  'record-files': option.integer(
    { min: 0, max: 10_000, default: 8 },
    'Number of renamed files that --record keeps; older files are overwritten.',
  ),
  'record-compress': option.flag(
    'Leave renamed files of --record as they are. Default: they are compressed with zstd, to FILE.1.zst and so on.',
    { default: true },
  ),
  'trace-to': option.text(
    'URL',
    "Send a trace of each request to an OpenTelemetry collector (OTLP over HTTP, such as http://127.0.0.1:4318): the time of the request and of its stages, below the client's span if the request has traceparent. Needs OpenTelemetry's packages (docs/operations.md#send-traces).",
  ),
  'trace-every': option.integer(
    { min: 1, default: 1 },
    'With --trace-to: trace one of N requests. Of a request with traceparent, its flag decides.',
  ),
  ...PERTURB_OPTIONS,
  ...RETRIEVER_OPTIONS,
} as const satisfies OptionTable;

export type ServeOptions = CommandContext<typeof SERVE_OPTIONS>['options'];
