import { TrawlError, usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { isServerUrl } from '../../src/encoder/model-server/server-url.ts';
import type { OpenRetrieverOptions } from '../../src/search/opening/open-retriever.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { trawlServerUrl } from '../../src/stores/trawl-server/native-api.ts';
import type { ServerFacts } from '../../src/stores/trawl-server/native-replies.ts';
import { ServerRetriever } from '../../src/stores/trawl-server/server-retriever.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { readApiKey } from '../options/api-key.ts';
import { refuseOptions } from '../options/checks.ts';
import { filterOption } from '../options/filter-option.ts';
import * as option from '../options/option.ts';
import { modesOption, type RANKING_OPTIONS } from '../options/ranking-options.ts';
import { checkRerankOptions, RERANK_OPTIONS, type RerankOptions } from '../options/rerank-options.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../options/retriever-options.ts';
import { VIEW_OPTIONS, type ViewOptions } from '../options/view-options.ts';
import { openReranked } from './open-reranked.ts';

/** The options of the commands that search in an index directory, or with --url in an index of a running server. */
export const SERVER_OPTIONS = {
  url: option.text(
    'URL',
    "Search in an index of this running Trawl server (http://HOST:PORT, or with /indexes/NAME) in place of an index directory. Encoder and reranker are the server's; the output is the same. docs/bulk-search.md says more.",
  ),
  concurrency: option.integer({ min: 1, max: 1024, default: 4 }, 'With --url: requests at the same time.'),
  'request-timeout-ms': option.integer(
    { min: 1, max: 999_999_999, default: 300_000 },
    'With --url: time limit of a request in milliseconds. A request is repeated up to nine times after 429, 503 or no answer.',
  ),
  'key-file': option.text('FILE', 'With --url: file with the API key of the server.'),
} as const satisfies OptionTable;

/** With --url, for a command that has no other use of --index. */
export const SERVED_INDEX_OPTION = option.text(
  'NAME',
  "With --url: the served index. Default: the index in the URL, else the server's default index.",
);

/** What a server has settled: its encoder, and how its reranker and its views are opened. */
const SERVER_SIDE_OPTIONS: readonly string[] = [
  ...Object.keys(RETRIEVER_OPTIONS),
  ...Object.keys(RERANK_OPTIONS).filter((name) => name !== 'rerank' && name !== 'rerank-depth'),
  ...Object.keys(VIEW_OPTIONS).filter((name) => name !== 'view'),
];

export interface OpenSource {
  readonly source: SearchSource;
  /** Undefined for an index directory. */
  readonly server: ServerFacts | undefined;
  close(): Promise<void>;
}

type ServerOptions = OptionValues<typeof SERVER_OPTIONS>;

interface SourceOptions {
  readonly options: ServerOptions & RerankOptions & ViewOptions;
  /** Undefined with --url. */
  readonly folder: string | undefined;
  /** Further index directories. */
  readonly further?: readonly string[];
  /** The name of the served index. */
  readonly served: string | undefined;
  /** Of an index directory; the modes and the signal also hold for a server. */
  readonly retrieving: OpenRetrieverOptions;
  readonly note: (message: string) => void;
}

/**
 * The arguments with the index directory first; undefined in its place with --url.
 *
 * @throws TrawlError USAGE if both or none are given, or an option has no effect; CONFIG_INVALID for a URL with a user or query.
 */
export function withFolder(
  positionals: readonly string[],
  { url }: ServerOptions,
  given: ReadonlySet<string>,
  most: number,
): readonly (string | undefined)[] {
  if (url === undefined) {
    refuseOptions(given, Object.keys(SERVER_OPTIONS), 'without --url URL');
    return positionals;
  }
  if (!isServerUrl(url)) {
    // Not repeated: it may have a password.
    throw usageError('--url has no http: or https: at its start; expected a URL such as http://127.0.0.1:8000.');
  }
  trawlServerUrl(url);
  if (positionals.length >= most) {
    throw usageError(
      `--url takes the place of the index directory, so leave ${JSON.stringify(positionals[0])} out. ` +
        'trawl search takes the queries for a server from --queries FILE.',
    );
  }
  refuseOptions(given, SERVER_SIDE_OPTIONS, 'with --url: the server was started with its own');
  return [undefined, ...positionals];
}

/**
 * Opens the index directory as `openReranked` does, or the index of the server of --url.
 *
 * @throws TrawlError as `openReranked` and `ServerRetriever.open`; NOT_SUPPORTED for a mode or reranker that the server does not have.
 */
export async function openSource(opening: SourceOptions): Promise<OpenSource> {
  const { options, folder, further, retrieving } = opening;
  if (options.url !== undefined) {
    const retriever = await openServer(options, { ...opening, view: options.view, signal: retrieving.signal });
    checkOffers(retriever, retrieving.modes ?? [], options.rerank);
    return { source: retriever, server: retriever.server, close: async () => undefined };
  }
  const { retriever, close } = await openReranked(folder!, options, retrieving, further);
  return { source: retriever, server: undefined, close };
}

/**
 * How the index of a command that searches is opened.
 *
 * @throws TrawlError USAGE for a filter with a fault, and for options without effect, before anything is opened.
 */
export function searchSettings(
  options: OptionValues<typeof RANKING_OPTIONS> & RerankOptions & Parameters<typeof retrieverOptions>[0],
  given: ReadonlySet<string>,
  { signal, note }: { readonly signal: AbortSignal; readonly note: (message: string) => void },
): OpenRetrieverOptions {
  filterOption(options.filter);
  const modes = modesOption(options, given);
  checkRerankOptions(options, given);
  checkEndpointOptions(options.model, given);
  return { ...retrieverOptions(options), signal, modes, onWarning: note };
}

/** Opens an index of the server of --url. @throws TrawlError as `ServerRetriever.open`. */
export function openServer(
  { url, concurrency, 'key-file': keyFile, 'request-timeout-ms': timeoutMs }: ServerOptions,
  index: {
    readonly served?: string;
    readonly view?: string;
    readonly signal?: AbortSignal;
    note(message: string): void;
  },
): Promise<ServerRetriever> {
  const { served, view, signal, note } = index;
  const onWait = waitNotes(url!, note);
  return ServerRetriever.open(url!, {
    apiKey: readApiKey(keyFile),
    index: served,
    view,
    concurrency,
    timeoutMs,
    onWait,
    signal,
  });
}

function checkOffers(
  { server, info: { index, modes, reranker } }: ServerRetriever,
  wanted: readonly SearchMode[],
  rerank: string | undefined,
): void {
  const missing = wanted.find((mode) => !modes.includes(mode));
  if (missing !== undefined) {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The index ${index} of ${server.url} cannot be searched in mode ${missing}, only in ${modes.join(', ')}.`,
    );
  }
  if (rerank === undefined || rerank === reranker?.name) return;
  const has = reranker === null ? 'has no reranker' : `has the reranker ${reranker.name}`;
  throw new TrawlError('NOT_SUPPORTED', `--rerank ${rerank}: ${server.url} ${has}. With --url, name the server's.`);
}

/** Milliseconds between two notes. */
const NOTE_EVERY_MS = 10_000;

/** Says at intervals that the server is waited for, and why. */
function waitNotes(url: string, note: (message: string) => void): (reason: string, ms: number) => void {
  let next = 0;
  return (reason, ms) => {
    if (performance.now() < next) return;
    next = performance.now() + NOTE_EVERY_MS;
    note(`waiting ${(ms / 1000).toFixed(1)} s for ${url}: ${reason}`);
  };
}
