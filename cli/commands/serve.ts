import { isNodeError, TrawlError } from '../../src/errors.ts';
import { RetrieverHolder } from '../../src/http/retriever-holder.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/http/server-config.ts';
import { AnswerCache } from '../../src/retrieval/answer-cache.ts';
import { DEFAULT_MAX_WAITING_BYTES } from '../../src/retrieval/bounded-retriever.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { openRetriever } from '../../src/retrieval/open-retriever.ts';
import type { Retriever } from '../../src/retrieval/retriever.ts';
import { defineCommand, EXIT } from '../command.ts';
import { parseExtraListener } from '../extra-listener.ts';
import { formatCount } from '../format.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';

const MIB = 1024 * 1024;
/** What parts that are no longer held up by a client get to close, past the grace period. */
const AFTER_CUT_MS = 500;

export const serveCommand = defineCommand({
  name: 'serve',
  summary: 'serve an index over HTTP to search agents',
  description:
    'Answers as the retrieval servers of Search-R1, SkyRL, rLLM, R1-Searcher, ReSearch and others do (docs/dialects.md), ' +
    'with embeddings and a search of its own under /v1 (docs/http-api.md), the API described at /docs, and a search page ' +
    'at /.\n\n' +
    'Listens on this machine alone unless --host says otherwise: there is no access control yet, so with --host 0.0.0.0 ' +
    'everyone who reaches the port can search. SIGTERM and Ctrl-C let running requests end first.\n\n' +
    'The log goes to stderr: lines for a person on a terminal, JSON elsewhere. With --json one line of JSON on stdout, ' +
    '{"url", "pid", "index", …}, says that the server is ready.\n\n' +
    'The command line of Search-R1’s retrieval_server.py (--index_path, --corpus_path, …) is understood too: what is not ' +
    'imported yet is imported first (docs/agents.md).',
  positionals: { usage: '<index>', help: { index: 'The index directory.' }, min: 1, max: 1 },
  options: {
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
      value: '[HOST:]PORT=DIALECT',
      help: 'A further address on which DIALECT is preferred, for clients that have their port fixed: 6002=zerosearch. :shed-after-ms=N and :deadline-ms=N behind it hold for this address alone: 8001=search-r1:deadline-ms=25000. May be given several times.',
    },
    dialect: {
      kind: 'list',
      value: 'NAME',
      help: 'Dialect to prefer where a request to POST /retrieve could be that of several: zerosearch, rllm, rllm-legacy, stepsearch, skyrl or search-r1. May be given several times, most preferred first. docs/dialects.md has what each one takes.',
    },
    mcp: {
      kind: 'flag',
      help: 'Also answer assistants at /mcp (Model Context Protocol, streamable HTTP) with the tools search and fetch.',
    },
    'mcp-host': {
      kind: 'list',
      value: 'NAME',
      help: 'With --mcp: a host name, besides localhost, by which /mcp may be asked for through a proxy, and whose pages may ask. May be given several times.',
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
      default: DEFAULT_SERVER_CONFIG.shedAfterMs,
      help: 'Refuse a request with 503 and Retry-After where it would have to wait longer than so many milliseconds. 0: let it wait. For clients that try again; those of Search-R1 and RAG-R1 take any error as the end.',
    },
    'deadline-ms': {
      kind: 'integer',
      min: 0,
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
      help: 'Compute equal queries that are under way at the same time once. --no-single-flight computes each.',
    },
    'grace-s': {
      kind: 'integer',
      min: 0,
      max: 3600,
      default: 30,
      help: 'Seconds that running requests get to end after SIGTERM or Ctrl-C. Then their connections are cut. A second signal stops at once.',
    },
    ...RETRIEVER_OPTIONS,
  },
  examples: ['trawl serve indexes/sample', 'trawl serve indexes/wiki18 --host 0.0.0.0 --port 8123 --topk 3'],
  async run({ options, positionals, signal, out, note }) {
    if (options.topk > options['max-k']) {
      throw new TrawlError('USAGE', `--topk ${options.topk} is more than --max-k ${options['max-k']} allows.`);
    }
    // A look at the files costs nothing, and a path that is wrong should be said before a port is taken.
    openIndexDirectory(positionals[0]!);
    // Loaded here, so that the other commands start without a web server.
    const [{ buildApp }, { listen }, { serverLog }] = await Promise.all([
      import('../../src/http/app.ts'),
      import('../../src/http/listen.ts'),
      import('../server-log.ts'),
    ]);
    const log = options.quiet ? undefined : await serverLog({ terminal: process.stderr.isTTY === true });
    const holder = new RetrieverHolder();
    const config = {
      topk: options.topk,
      maxK: options['max-k'],
      maxQueries: options['max-queries'],
      maxQueryChars: options['max-query-chars'],
      maxBodyBytes: options['max-body-mib'] * MIB,
      mcp: options.mcp ? { hosts: options['mcp-host'].map((name) => name.toLowerCase()) } : null,
      shedAfterMs: options['shed-after-ms'],
      deadlineMs: options['deadline-ms'],
      logger: log?.logger ?? null,
    };
    const extra = options.listen.map((text) => parseExtraListener(text, options.host));
    const app = buildApp(holder, { ...config, dialects: options.dialect });
    const extraApps = extra.map(({ dialect, waiting }) => {
      const others = options.dialect.filter((name) => name !== dialect);
      return buildApp(holder, { ...config, ...waiting, dialects: [dialect, ...others] });
    });
    const apps = [app, ...extraApps];
    let retriever: Retriever | undefined;
    const inTime = endWithin(options['grace-s'] * 1000, signal, {
      // What still runs loses its connection, and with it its reason to run.
      cut() {
        for (const each of apps) each.server.closeAllConnections();
      },
      end() {
        note('stopping: not everything could be closed in time');
        log?.flush();
        // The encoder's threads have their own short wait for this.
        process.exit(EXIT.ok);
      },
    });
    try {
      const url = await listening(listen(app, options), options);
      for (const [i, address] of extra.entries()) await listening(listen(extraApps[i]!, address), address);
      retriever = await openRetriever(positionals[0]!, {
        ...retrieverOptions(options),
        answerCache: options['cache-bytes'] === 0 ? undefined : new AnswerCache(options['cache-bytes']),
        singleFlight: options['single-flight'],
        maxWaitingBytes: options['max-waiting-mib'] * MIB,
        onWarning: note,
        onProgress: (doing) => holder.report(doing),
      });
      holder.ready(retriever);
      if (options.json) out(JSON.stringify(startFacts(url, retriever)));
      else if (!signal.aborted) for (const line of banner(url, options.host, retriever)) note(line);
      await aborted(signal);
      note(`${process.stderr.isTTY === true ? '\n' : ''}stopping: running requests end first`);
      holder.stop();
      await Promise.all(apps.map((each) => each.close()));
      return EXIT.ok;
    } finally {
      holder.stop();
      for (const each of apps) each.server.closeAllConnections();
      await Promise.all(apps.map((each) => each.close()));
      await retriever?.close();
      inTime();
      log?.flush();
    }
  },
});

/** Where it cannot listen for other reasons than a port that is taken, the address given is wrong. */
async function listening(attempt: Promise<string>, { host, port }: { host: string; port: number }): Promise<string> {
  try {
    return await attempt;
  } catch (error) {
    if (error instanceof TrawlError || !isNodeError(error)) throw error;
    const reason = LISTEN_REASONS[error.code!] ?? error.message;
    throw new TrawlError('USAGE', `Cannot listen on ${host}:${port}: ${reason}. Choose another --host or --port.`, {
      details: { host, port, reason: error.code },
      cause: error,
    });
  }
}

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied (ports below 1024 need privileges)',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'no such host name',
  EAI_AGAIN: 'the host name cannot be looked up',
};

/** The one line of `--json`: for a script that starts a server and waits until it is ready. */
function startFacts(url: string, { info }: Retriever): object {
  const { index, rows, dimension, metric, generation, model } = info;
  return { url, pid: process.pid, index, rows, dimension, metric, generation, model: model.name };
}

/** What a person needs after the start: where it is, a request to copy, what to do next. */
function banner(url: string, host: string, { info }: Retriever): string[] {
  const curl = `curl -s ${url}/retrieve -H 'content-type: application/json' -d '{"queries": ["who designed the Eiffel Tower"], "topk": 3, "return_scores": true}'`;
  const lines = [
    '',
    `Serving ${info.index} (${formatCount(info.rows)} passages, ${info.model.name}) on ${url}`,
    '',
    `  search page   ${url}/`,
    `  try it        ${curl}`,
    '  stop          Ctrl-C',
    '',
  ];
  if (!isLoopback(host))
    lines.push(`  note          ${host}: whoever reaches this machine can search; there is no access control.`, '');
  return lines;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/**
 * From the signal on there is an end within `graceMs` and a moment, whatever runs or is stuck: a start, a request, the
 * closing itself. The function returned says that the end has come by itself.
 */
function endWithin(
  graceMs: number,
  signal: AbortSignal,
  { cut, end }: { cut: () => void; end: () => void },
): () => void {
  let timer: NodeJS.Timeout | undefined;
  // These keep the process alive: something stuck that does not would end it with a code that says failure.
  const start = (): void => {
    timer = setTimeout(() => {
      cut();
      timer = setTimeout(end, AFTER_CUT_MS);
    }, graceMs);
  };
  if (signal.aborted) start();
  else signal.addEventListener('abort', start, { once: true });
  return () => {
    signal.removeEventListener('abort', start);
    clearTimeout(timer);
  };
}
