import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { planServing, type ServePlan } from '../../evaluation/speed/serve-plan.ts';
import { usageError } from '../../src/base/errors.ts';
import { formatBytes, formatCount, formatNumberOf } from '../../src/base/format.ts';
import { exitProcess } from '../../src/base/system/exit-process.ts';
import { type AddressFile, writeAddressFile } from '../../src/server/connections/listen.ts';
import { isPublishedAddress } from '../../src/stores/published/published-address.ts';
import { checkEndpointOptions } from '../model/endpoint-options.ts';
import { checkRerankOptions } from '../options/rerank-options.ts';
import { retrieverOptions } from '../options/retriever-options.ts';
import { forecastLines } from '../output/forecast-lines.ts';
import { type CommandContext, defineCommand, EXIT } from '../program/command.ts';
import type { TrawlServer } from '../serve/make-server.ts';
import { SERVE_OPTIONS } from '../serve/serve-options.ts';
import { readServeSettings, type ServeSettings } from '../serve/serve-settings.ts';
import {
  closeServer,
  disconnectClients,
  endWithin,
  ReloadSignal,
  reloadServer,
  startListening,
  stopServing,
} from '../serve/server-lifecycle.ts';
import { banner, exposureNotes, perturbationNotes, startFacts } from '../serve/start-messages.ts';

export const serveCommand = defineCommand({
  name: 'serve',
  takesStoreAddress: true,
  summary: 'serve indexes over HTTP to search agents',
  description:
    'Answers the retrieval requests of Search-R1, SkyRL, rLLM, R1-Searcher, ReSearch and others at /retrieve and the other ' +
    'paths that they call (docs/dialects.md). The server also has a search and an embeddings API under /v1 ' +
    '(docs/http-api.md), a description of its API at /docs, and a search page at /.\n\n' +
    'By default the server listens only on this machine. To serve other machines, set --host, and protect the server with ' +
    '--keys-file and --tls-cert. SIGTERM and Ctrl-C stop the server after the running requests; SIGHUP reloads indexes, keys ' +
    'and certificates and reopens --record without interrupting requests (docs/operations.md).\n\n' +
    'The log goes to stderr, as JSON lines if stderr is not a terminal. With --json, one line of JSON on stdout, ' +
    '{"url", "pid", "index", …}, says that the server is ready.\n\n' +
    "The options of Search-R1's retrieval_server.py (--index_path, --corpus_path, …) are accepted too: files that are not " +
    'imported yet are imported first (docs/agents.md).',
  positionals: {
    usage: '<index> …',
    help: {
      index:
        'Index directories, or addresses of published indexes in Milvus or OpenSearch (milvus://…, opensearch://…, docs/cluster.md). The first is the default index, which answers requests that do not name one.',
    },
    min: 0,
    max: 1_000,
  },
  options: SERVE_OPTIONS,
  examples: [
    'trawl serve indexes/sample',
    'trawl serve indexes/wiki18 --index news=indexes/news',
    'trawl serve indexes/wiki18 --plan',
    'trawl serve indexes/wiki18 --host 0.0.0.0 --port 8123 --topk 3',
  ],
  async run(context) {
    const reloadSignal = new ReloadSignal();
    try {
      return await serve(context, reloadSignal);
    } finally {
      reloadSignal.close();
    }
  },
});

async function serve(context: CommandContext<typeof SERVE_OPTIONS>, reloadSignal: ReloadSignal): Promise<number> {
  const { options, signal, note } = context;
  checkRerankOptions(options, context.given);
  checkEndpointOptions(options.model, context.given);
  const settings = readServeSettings(options, context.positionals, context.given);
  if (options.plan) return printServePlan(settings, context);
  // Imported here so that the other commands do not load a web server.
  const { makeServer } = await import('../serve/make-server.ts');
  const server = await makeServer(settings, context);
  const endedInTime = endWithin(options['grace-s'] * 1000, signal, {
    disconnect: () => disconnectClients(server),
    end() {
      note('stopping: the time limit (--grace-s) is over, but not all parts are closed');
      server.log?.flush();
      // An exit hook of the encoder ends its threads.
      exitProcess(EXIT.ok);
    },
  });
  let addressFile: AddressFile | undefined;
  try {
    const url = await startListening(server);
    const { listeners, holder } = server;
    for (const line of [...exposureNotes(listeners, settings), ...perturbationNotes(listeners)]) note(`note: ${line}`);
    await openIndexes(server, signal);
    if (signal.aborted) note('stopping before the start was complete');
    else {
      addressFile = publishAddress(server, settings);
      if (options.json) context.out(JSON.stringify(startFacts(url, server)));
      else for (const line of banner(url, holder, settings.keys !== null)) note(line);
    }
    reloadSignal.handleWith(() => reloadServer(server, note));
    if (!signal.aborted) await once(signal, 'abort');
    note(`${process.stderr.isTTY === true ? '\n' : ''}stopping after the running requests`);
    addressFile?.remove();
    await stopServing(server);
    return EXIT.ok;
  } finally {
    addressFile?.remove();
    await closeServer(server);
    endedInTime();
    server.log?.flush();
  }
}

/** Time to answer the requests that wait for a start that failed, in milliseconds. */
const AFTER_FAILURE_MS = 2_000;

/** Opens every index. A signal stops it without an error. If one cannot be opened, the requests that wait are answered first. */
async function openIndexes(server: TrawlServer, signal: AbortSignal): Promise<void> {
  const { holder } = server;
  const stop = (): void => holder.stop();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  try {
    await holder.open();
  } catch (error) {
    if (signal.aborted) return;
    await Promise.race([stopServing(server), sleep(AFTER_FAILURE_MS, undefined, { ref: false })]);
    throw error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function publishAddress({ listeners }: TrawlServer, { addressFolder }: ServeSettings): AddressFile | undefined {
  if (addressFolder === undefined) return undefined;
  return writeAddressFile(addressFolder, listeners[0]!.app.server.address() as AddressInfo);
}

/** Prints what serving the indexes takes and how fast searches should be. Opens no port. Resolves to the exit code. */
async function printServePlan(
  { indexes, options }: ServeSettings,
  { out, note, signal }: CommandContext<typeof SERVE_OPTIONS>,
): Promise<number> {
  if (options.replay !== undefined || indexes.length === 0) {
    throw usageError('--plan needs an index. Omit --plan, or name an index directory without --replay.');
  }
  if (indexes.some(({ folder }) => isPublishedAddress(folder))) {
    throw usageError(
      '--plan measures this machine, which does not search an index in Milvus or OpenSearch (docs/cluster.md has sizes).',
    );
  }
  const plan = await planServing(indexes, {
    wordsOnly: options.mode === 'bm25',
    opening: { ...retrieverOptions(options), onWarning: note },
    signal,
  });
  out(options.json ? JSON.stringify(plan) : planLines(plan).join('\n'));
  return plan.problems.length === 0 ? EXIT.ok : EXIT.problems;
}

function planLines({ indexes, residentBytes, memoryLimitBytes, problems }: ServePlan): string[] {
  const lines = indexes.flatMap(({ index, rows, dimension, residentBytes: own, search }) => [
    `${index}: ${formatNumberOf(rows, 'passage')}${dimension === 0 ? ', without vectors' : ` × ${formatCount(dimension)}; searches read ${formatBytes(own)}`}`,
    ...(search === null ? [] : forecastLines(search)),
  ]);
  lines.push(`memory for searching: ${formatBytes(residentBytes)} of ${formatBytes(memoryLimitBytes)}`);
  if (problems.length > 0) lines.push('does not fit', ...problems.map((problem) => `  ${problem}`));
  return lines;
}
