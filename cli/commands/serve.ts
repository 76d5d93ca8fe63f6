import type { Logger } from 'pino';
import { asTrawlError, isNodeError, TrawlError } from '../../src/errors.ts';
import { RetrieverHolder } from '../../src/http/retriever-holder.ts';
import { DEFAULT_SERVER_CONFIG } from '../../src/http/server-config.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { defineCommand, EXIT } from '../command.ts';
import { parseExtraListener } from '../extra-listener.ts';
import { formatCount } from '../format.ts';
import { RETRIEVER_OPTIONS, retrieverOptions } from '../retriever-options.ts';
import { indexOpener, parseServedIndexes } from '../served-indexes.ts';

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
    '{"url", "pid", "index", …}, says that the server is ready.',
  positionals: {
    usage: '<index> …',
    help: { index: 'Index directories; the first one answers requests that name none.' },
    min: 0,
    max: 1_000,
  },
  options: {
    index: {
      kind: 'list',
      value: 'NAME=DIR',
      help: 'A further index, and what requests call it. May be given several times. A directory without a name has that of its folder.',
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
      value: '[HOST:]PORT=DIALECT',
      help: 'A further address on which DIALECT is preferred, for clients that have their port fixed: 6002=zerosearch. May be given several times.',
    },
    dialect: {
      kind: 'list',
      value: 'NAME',
      help: 'Dialect to prefer where a request to POST /retrieve could be that of several: zerosearch, rllm, rllm-legacy, stepsearch, skyrl or search-r1. May be given several times, most preferred first. docs/dialects.md has what each one takes.',
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
    'max-body-mib': {
      kind: 'integer',
      min: 1,
      // A body becomes one string, and Node's longest is a little under 512 MiB.
      max: 511,
      default: DEFAULT_SERVER_CONFIG.maxBodyBytes / MIB,
      help: 'Largest request body in MiB; a larger one is refused with 413.',
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
  examples: [
    'trawl serve indexes/sample',
    'trawl serve indexes/wiki18 --index news=indexes/news',
    'trawl serve indexes/wiki18 --host 0.0.0.0 --port 8123 --topk 3',
  ],
  async run({ options, positionals, signal, out, note }) {
    if (options.topk > options['max-k']) {
      throw new TrawlError('USAGE', `--topk ${options.topk} is more than --max-k ${options['max-k']} allows.`);
    }
    const indexes = parseServedIndexes([...positionals, ...options.index]);
    if (indexes.length === 0) {
      throw new TrawlError('USAGE', '<index> is missing: trawl serve <index>. See `trawl serve --help`.');
    }
    // A look at the files costs nothing, and a path that is wrong should be said before a port is taken.
    for (const { folder } of indexes) openIndexDirectory(folder);
    // Loaded here, so that the other commands start without a web server.
    const [{ buildApp }, { listen }, { serverLog }] = await Promise.all([
      import('../../src/http/app.ts'),
      import('../../src/http/listen.ts'),
      import('../server-log.ts'),
    ]);
    const log = options.quiet ? undefined : await serverLog({ terminal: process.stderr.isTTY === true });
    const open = indexOpener({ ...retrieverOptions(options), onWarning: note }, { warm: options.warm, signal });
    const holder = RetrieverHolder.over(indexes, open);
    const config = {
      topk: options.topk,
      maxK: options['max-k'],
      maxQueries: options['max-queries'],
      maxBodyBytes: options['max-body-mib'] * MIB,
      logger: log?.logger ?? null,
    };
    const extra = options.listen.map((text) => parseExtraListener(text, options.host));
    const app = buildApp(holder, { ...config, dialects: options.dialect });
    const extraApps = extra.map(({ dialect }) => {
      const others = options.dialect.filter((name) => name !== dialect);
      return buildApp(holder, { ...config, dialects: [dialect, ...others] });
    });
    const apps = [app, ...extraApps];
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
    // The signal by which servers are told to look at their files again.
    const onHangUp = (): void => void reloadAll(holder, note, log?.logger);
    process.on('SIGHUP', onHangUp);
    signal.addEventListener('abort', () => holder.stop(), { once: true });
    try {
      const url = await listening(listen(app, options), options);
      for (const [i, address] of extra.entries()) await listening(listen(extraApps[i]!, address), address);
      await holder.open().catch((error: unknown) => {
        // A start that was told to stop is no failure.
        if (!signal.aborted) throw error;
      });
      if (signal.aborted) note('stopping before the start was over');
      else if (options.json) out(JSON.stringify(startFacts(url, holder)));
      else for (const line of banner(url, options.host, holder)) note(line);
      await aborted(signal);
      note(`${process.stderr.isTTY === true ? '\n' : ''}stopping: running requests end first`);
      holder.stop();
      await Promise.all(apps.map((each) => each.close()));
      return EXIT.ok;
    } finally {
      holder.stop();
      for (const each of apps) each.server.closeAllConnections();
      await Promise.all(apps.map((each) => each.close()));
      process.off('SIGHUP', onHangUp);
      await holder.close();
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

/** Every index anew, one after another; one that cannot be opened goes on as it was. */
async function reloadAll(
  holder: RetrieverHolder,
  note: (text: string) => void,
  log: Logger | undefined,
): Promise<void> {
  if (holder.state !== 'ready') return;
  for (const slot of holder.slots) {
    try {
      const { generation, rows } = (await slot.load()).info;
      log?.info({ index: slot.name, generation, rows }, 'index reloaded');
      note(`${slot.name}: opened anew (generation ${generation})`);
    } catch (error) {
      const { code, message } = asTrawlError(error);
      log?.error({ index: slot.name, code, reason: message }, 'reload failed');
      note(`${slot.name}: could not be opened anew, the old one goes on: ${message} [${code}]`);
    }
  }
}

/** The one line of `--json`: for a script that starts a server and waits until it is ready. */
function startFacts(url: string, { slots }: RetrieverHolder): object {
  const indexes = slots.map((slot) => {
    const { index, rows, dimension, metric, generation, model } = slot.retriever!.info;
    return { index, rows, dimension, metric, generation, model: model.name };
  });
  return { url, pid: process.pid, ...indexes[0], ...(indexes.length === 1 ? {} : { indexes }) };
}

/** What a person needs after the start: where it is, a request to copy, what to do next. */
function banner(url: string, host: string, { slots }: RetrieverHolder): string[] {
  const curl = `curl -s ${url}/retrieve -H 'content-type: application/json' -d '{"queries": ["who designed the Eiffel Tower"], "topk": 3, "return_scores": true}'`;
  const names = slots.map(({ retriever }) => {
    const { index, rows, model } = retriever!.info;
    return `${index} (${formatCount(rows)} passages, ${model.name})`;
  });
  const lines = [
    '',
    `Serving ${names.join(', ')} on ${url}`,
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
