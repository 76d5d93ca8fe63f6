import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Server as TlsServer } from 'node:tls';
import { isNodeError, TrawlError } from '../../src/errors.ts';
import { acceptArrived } from '../../src/http/quiet-connections.ts';
import { RetrieverHolder } from '../../src/http/retriever-holder.ts';
import { AnswerCache } from '../../src/retrieval/answer-cache.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { QueryRecorder } from '../../src/retrieval/query-recorder.ts';
import { type AddressFile, makeAddressFolder, writeAddressFile } from '../address-file.ts';
import { type CommandContext, defineCommand, EXIT } from '../command.ts';
import { parseExtraListener } from '../extra-listener.ts';
import { HangUps, reloadServer } from '../reload-server.ts';
import { retrieverOptions } from '../retriever-options.ts';
import { MIB, SERVE_OPTIONS } from '../serve-options.ts';
import { banner, exposureNotes, startFacts } from '../serve-start.ts';
import { indexOpener, parseServedIndexes } from '../served-indexes.ts';
import { readKeys, readTls } from '../server-files.ts';

/** What parts that are no longer held up by a client get to close, past the grace period. */
const AFTER_CUT_MS = 500;

export const serveCommand = defineCommand({
  name: 'serve',
  summary: 'serve an index over HTTP to search agents',
  description:
    'Answers as the retrieval servers of Search-R1, SkyRL, rLLM, R1-Searcher, ReSearch and others do (docs/dialects.md), ' +
    'with embeddings and a search of its own under /v1 (docs/http-api.md), the API described at /docs, and a search page ' +
    'at /.\n\n' +
    'Listens on this machine alone unless --host says otherwise; beyond it, --keys-file and --tls-cert say who may search ' +
    'and keep it private. SIGTERM and Ctrl-C let running requests end first; SIGHUP opens indexes, keys and certificates ' +
    'anew while requests go on (docs/operations.md).\n\n' +
    'The log goes to stderr: lines for a person on a terminal, JSON elsewhere. With --json one line of JSON on stdout, ' +
    '{"url", "pid", "index", …}, says that the server is ready.\n\n' +
    'The command line of Search-R1’s retrieval_server.py (--index_path, --corpus_path, …) is understood too: what is not ' +
    'imported yet is imported first (docs/agents.md).',
  positionals: {
    usage: '<index> …',
    help: { index: 'Index directories; the first one answers requests that name none.' },
    min: 0,
    max: 1_000,
  },
  options: SERVE_OPTIONS,
  examples: [
    'trawl serve indexes/sample',
    'trawl serve indexes/wiki18 --index news=indexes/news',
    'trawl serve indexes/wiki18 --host 0.0.0.0 --port 8123 --topk 3',
  ],
  async run(context) {
    const hangUps = new HangUps();
    try {
      return await serve(context, hangUps);
    } finally {
      hangUps.close();
    }
  },
});

async function serve(
  { options, positionals, signal, out, note }: CommandContext<typeof SERVE_OPTIONS>,
  hangUps: HangUps,
): Promise<number> {
  if (options.topk > options['max-k']) {
    throw new TrawlError('USAGE', `--topk ${options.topk} is more than --max-k ${options['max-k']} allows.`);
  }
  const keys = readKeys(options['keys-file']);
  const tls = readTls(options['tls-cert'], options['tls-key']);
  const addressDir = options['address-dir'];
  const addresses = addressDir === undefined ? undefined : makeAddressFolder(addressDir);
  const indexes = parseServedIndexes([...positionals, ...options.index]);
  if (indexes.length === 0) {
    throw new TrawlError('USAGE', '<index> is missing: trawl serve <index>. See `trawl serve --help`.');
  }
  // A look at the files costs nothing, and a path that is wrong should be said before a port is taken.
  for (const { folder } of indexes) openIndexDirectory(folder);
  // Loaded here, so that the other commands start without a web server.
  const [{ buildApp }, { preferredFor }, { listen }, { ServerMetrics }, { serverLog }] = await Promise.all([
    import('../../src/http/app.ts'),
    import('../../src/http/dialects/dispatch.ts'),
    import('../../src/http/listen.ts'),
    import('../../src/http/server-metrics.ts'),
    import('../server-log.ts'),
  ]);
  const log = options.quiet ? undefined : await serverLog({ terminal: process.stderr.isTTY === true });
  const retrieving = {
    ...retrieverOptions(options),
    longLived: true,
    // Shared by all indexes; a reload begins with none of the old answers.
    answerCache: options['cache-bytes'] === 0 ? undefined : new AnswerCache(options['cache-bytes']),
    singleFlight: options['single-flight'],
    maxWaitingBytes: options['max-waiting-mib'] * MIB,
    onWarning: note,
  };
  const open = indexOpener(retrieving, { warm: options.warm, signal });
  const holder = RetrieverHolder.over(indexes, open);
  const metrics = new ServerMetrics({ process: true });
  const recorder = await openRecorder(options, note);
  if (log !== undefined) metrics.dropped('log', log.dropped);
  if (recorder !== undefined) metrics.dropped('record', () => recorder.dropped);
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
    logEvery: options['log-every'],
    metrics,
    record: recorder ?? null,
    keys,
    tls,
    corsOrigins: options['cors-origin'],
    maxConnections: options['max-connections'],
    writeStallMs: options['stall-s'] * 1000,
  };
  const extra = options.listen.map((text) => parseExtraListener(text, options.host));
  const app = buildApp(holder, { ...config, dialects: options.dialect });
  const extraApps = extra.map(({ dialect, waiting }) =>
    buildApp(holder, { ...config, ...waiting, dialects: preferredFor(dialect, options.dialect) }),
  );
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
  const files = [
    () => {
      if (keys !== null) keys.replaceBy(readKeys(options['keys-file']) ?? keys);
    },
    () => {
      const next = readTls(options['tls-cert'], options['tls-key']);
      if (next !== null) for (const each of apps) (each.server as unknown as TlsServer).setSecureContext(next);
    },
  ];
  const stopStart = (): void => {
    if (holder.state === 'starting') holder.stop();
  };
  signal.addEventListener('abort', stopStart, { once: true });
  let addressFile: AddressFile | undefined;
  try {
    const url = await listening(listen(app, options), options);
    for (const [i, address] of extra.entries()) await listening(listen(extraApps[i]!, address), address);
    for (const host of new Set([options.host, ...extra.map((each) => each.host)])) {
      for (const line of exposureNotes(host, { keys: keys !== null, tls: tls !== null })) note(`note: ${line}`);
    }
    await holder.open().catch((error: unknown) => {
      // A start that was told to stop is no failure.
      if (!signal.aborted) throw error;
    });
    if (addresses !== undefined && !signal.aborted) {
      addressFile = writeAddressFile(addresses, app.server.address() as AddressInfo);
    }
    if (signal.aborted) note('stopping before the start was over');
    else if (options.json) out(JSON.stringify(startFacts(url, holder)));
    else for (const line of banner(url, holder, keys !== null)) note(line);
    hangUps.answerBy(() => reloadServer({ holder, metrics, log: log?.logger, files, note }));
    await aborted(signal);
    note(`${process.stderr.isTTY === true ? '\n' : ''}stopping: running requests end first`);
    addressFile?.remove();
    await acceptArrived(apps.map(({ server }) => server));
    const closed = Promise.all(apps.map((each) => each.close()));
    // Clients that are sent away come back at once: to doors that are shut, not to ones that are about to be.
    while (apps.some(({ server }) => server.listening)) await nextTurn();
    holder.stop();
    await closed;
    return EXIT.ok;
  } finally {
    addressFile?.remove();
    holder.stop();
    for (const each of apps) each.server.closeAllConnections();
    await Promise.all(apps.map((each) => each.close()));
    await holder.close();
    await recorder?.close();
    inTime();
    log?.flush();
  }
}

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

async function openRecorder(
  options: { readonly record: string | undefined; readonly 'record-mib': number; readonly 'record-files': number },
  note: (text: string) => void,
): Promise<QueryRecorder | undefined> {
  if (options.record === undefined) return undefined;
  return QueryRecorder.open({
    path: resolve(options.record),
    maxFileBytes: options['record-mib'] * MIB,
    keep: options['record-files'],
    onFailure: (error) =>
      note(`--record: ${(error as Error).message}; queries are not recorded until it can be written`),
  });
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
