import { resolve } from 'node:path';
import type { Server as TlsServer } from 'node:tls';
import { WritableFolder } from '../../indexer/writable/writable-folder.ts';
import { asTrawlError } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';
import type { OptionTable } from '../../src/base/options/option-spec.ts';
import { bothFilters } from '../../src/engine/filter/filter.ts';
import { mergedHybrid } from '../../src/search/hybrid/hybrid-settings.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import { buildApp } from '../../src/server/app.ts';
import type { ListenAddress } from '../../src/server/connections/listen.ts';
import { preferredFor } from '../../src/server/dialects/dispatch.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import type { OnCloseFailed } from '../../src/server/indexes/index-slot.ts';
import { ServerMetrics } from '../../src/server/metrics/server-metrics.ts';
import { QueryRecorder } from '../../src/server/recording/query-recorder.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import type { RequestTracer } from '../../src/server/tracing/tracer.ts';
import type { GoldPassages } from '../../training/perturbation/gold-passages.ts';
import { Perturbation } from '../../training/perturbation/perturbation.ts';
import { filterOption } from '../options/filter-option.ts';
import { hybridOptions } from '../options/hybrid-options.ts';
import { openReranker } from '../options/rerank-options.ts';
import { retrieverOptions } from '../options/retriever-options.ts';
import type { CommandContext } from '../program/command.ts';
import { openTracer } from './open-tracer.ts';
import { perturbRates, perturbSettings, readGoldPassages } from './perturb-options.ts';
import { bundleOpener } from './replayed-bundle.ts';
import { MIB } from './serve-options.ts';
import type { ServeOptions, ServeSettings } from './serve-settings.ts';
import { indexOpener } from './served-indexes.ts';
import { readKeys, readTls } from './server-files.ts';
import { type ServerLog, serverLog } from './server-log.ts';
import { SharedReranker } from './shared-reranker.ts';

/** The parts of a running `trawl serve`. */
export interface TrawlServer {
  readonly holder: IndexRegistry;
  /** The indexes that are made over HTTP; undefined without --writable. */
  readonly writable: WritableFolder | undefined;
  /** The main address is first. */
  readonly listeners: readonly {
    readonly app: ReturnType<typeof buildApp>;
    readonly address: ListenAddress;
    readonly perturbation: Perturbation | null;
  }[];
  readonly metrics: ServerMetrics;
  /** Undefined with --quiet. */
  readonly log: ServerLog | undefined;
  readonly recorder: QueryRecorder | undefined;
  readonly tracer: RequestTracer | undefined;
  readonly reranker: SharedReranker | undefined;
  /** What a reload reads again in addition to the indexes. */
  readonly files: readonly ReloadedFile[];
}

/** A file that a reload reads or opens again, such as the keys file. */
interface ReloadedFile {
  /** The option that names the file, for messages. */
  readonly option: string;
  /** If it throws, the old content stays in use. */
  reload(): void | Promise<void>;
}

/** Creates the parts of the server, which does not listen yet and has no open index. */
export async function makeServer(
  settings: ServeSettings,
  { signal, note }: Pick<CommandContext<OptionTable>, 'signal' | 'note'>,
): Promise<TrawlServer> {
  const { options, indexes, groups } = settings;
  const gold = options['perturb-gold'] === undefined ? null : await readGoldPassages(options['perturb-gold']);
  const reranker = sharedReranker(options);
  const open = options.replay === undefined ? openerFor(settings, reranker, { signal, note }) : bundleOpener(options);
  const log = options.quiet ? undefined : await serverLog({ terminal: process.stderr.isTTY === true });
  const writable = prepareWritable(options, log, note);
  const onCloseFailed: OnCloseFailed = (index, error) => {
    const { code, message } = asTrawlError(error);
    log?.logger.error({ index, code, reason: message }, 'closing the replaced index failed');
    note(`${index}: the replaced index could not be closed, its memory stays in use: ${message} [${code}]`);
  };
  let holder: IndexRegistry;
  try {
    holder = IndexRegistry.opening([...indexes, ...(writable?.targets() ?? [])], open, groups, onCloseFailed);
    await writable?.attach(holder, open, onCloseFailed);
  } catch (error) {
    await writable?.close();
    throw error;
  }
  const recorder = await openRecorder(options, note);
  const tracer = await openTracer(options, log, note);
  const metrics = new ServerMetrics({ process: true });
  if (log !== undefined) metrics.dropped('log', log.dropped);
  if (recorder !== undefined) metrics.dropped('record', () => recorder.dropped);
  const listeners = listenersFor(holder, settings, gold, {
    metrics,
    logger: log?.logger ?? null,
    record: recorder ?? null,
    tracer: tracer ?? null,
    writable: writable ?? null,
  });
  const files = reloadedFiles(settings, { listeners, recorder });
  return { holder, writable, listeners, metrics, log, recorder, tracer, reranker, files };
}

function prepareWritable(
  { writable }: ServeOptions,
  log: ServerLog | undefined,
  note: (text: string) => void,
): WritableFolder | undefined {
  if (writable === undefined) return undefined;
  return WritableFolder.prepare(writable, {
    onRefreshed: (index, seconds) => log?.logger.info({ index, seconds }, 'index refreshed'),
    onFailure(index, error) {
      const { code, message } = asTrawlError(error);
      log?.logger.error({ index, code, reason: message }, 'refresh failed');
      note(`${index}: refresh failed, searches find what they found before: ${message} [${code}]`);
    },
  });
}

function sharedReranker(options: ServeOptions): SharedReranker | undefined {
  // A bundle has answers that were reranked already.
  if (options.rerank === undefined || options.replay !== undefined) return undefined;
  return new SharedReranker(async () => (await openReranker(options, { trialAtStart: true }))!);
}

function openerFor(
  { options, extraListeners, fieldRanking, views }: ServeSettings,
  reranker: SharedReranker | undefined,
  { signal, note }: Pick<CommandContext<OptionTable>, 'signal' | 'note'>,
) {
  // Do not load an encoder that no address uses.
  const onlyBm25 =
    options.mode === 'bm25' && extraListeners.every(({ settings: { mode = 'bm25' } }) => mode === 'bm25');
  const retrieving = {
    ...retrieverOptions(options),
    ...(onlyBm25 ? { modes: ['bm25'] as const } : {}),
    fieldRanking,
    cutTokenizer: options['cut-tokenizer'],
    // An index that lacks a list is refused now, not with each request.
    ...(options.mode === 'hybrid' ? { modes: ['hybrid'] as const } : {}),
    trialAtStart: true,
    // Shared by all indexes. Each opened index has its own entries, so that a reloaded index never returns old answers.
    answerCache: options['cache-bytes'] === 0 ? undefined : new AnswerCache(options['cache-bytes']),
    singleFlight: options['single-flight'],
    maxWaitingBytes: options['max-waiting-mib'] * MIB,
    maxRerankTokens: options['rerank-max-tokens'],
    onWarning: note,
  };
  const filters = [filterOption(options.filter), ...extraListeners.map(({ settings }) => settings.filter)];
  return indexOpener(retrieving, {
    warm: options.warm,
    filters: filters.filter((filter) => filter !== undefined),
    views,
    reranker,
    signal,
  });
}

/** One app per address. The apps share the indexes, but have their own dialects, time limits, truncation, mode and view. */
function listenersFor(
  holder: IndexRegistry,
  { options, extraListeners, keys, tls }: ServeSettings,
  gold: GoldPassages | null,
  sinks: Pick<ServerConfig, 'metrics' | 'logger' | 'record' | 'tracer' | 'writable'>,
): TrawlServer['listeners'] {
  const config = {
    topk: options.topk,
    truncate: options.truncate,
    mode: options.mode ?? null,
    filter: filterOption(options.filter) ?? null,
    views: options.view === undefined ? [] : [options.view],
    bm25Order: options['bm25-order'],
    hybrid: hybridOptions(options),
    rerank: rerankDefault(options, options['rerank-depth']),
    maxK: options['max-k'],
    maxQueries: options['max-queries'],
    maxQueryChars: options['max-query-chars'],
    maxBodyBytes: options['max-body-mib'] * MIB,
    mcp: options.mcp ? mcpConfig(options) : null,
    shedAfterMs: options['shed-after-ms'],
    deadlineMs: options['deadline-ms'],
    holdMs: options['hold-s'] * 1000,
    logEvery: options['log-every'],
    keys,
    tls,
    corsOrigins: options['cors-origin'],
    maxConnections: options['max-connections'],
    writeStallMs: options['stall-s'] * 1000,
    ...sinks,
  };
  const perturbing = (rates: ReturnType<typeof perturbRates>): Perturbation =>
    new Perturbation(perturbSettings(rates, options), gold);
  const perturbation = options.perturb === undefined ? null : perturbing(perturbRates(options.perturb));
  return [
    {
      app: buildApp(holder, { ...config, searchHook: perturbation, dialects: options.dialect }),
      address: options,
      perturbation,
    },
    ...extraListeners.map((address) => {
      const dialects = preferredFor(address.dialect, options.dialect);
      const { rerankDepth = options['rerank-depth'], view, perturb, ...own } = address.settings;
      const views = [...config.views, ...(view === undefined ? [] : [view])];
      const rerank = rerankDefault(options, rerankDepth);
      const hybrid = mergedHybrid(own.hybrid ?? {}, config.hybrid);
      const filter = bothFilters(filterOption(options.filter), own.filter) ?? null;
      const ofAddress = perturb === undefined ? perturbation : perturb && perturbing(perturb);
      const limits = { filter, views, hybrid, rerank, searchHook: ofAddress };
      return {
        app: buildApp(holder, { ...config, ...defined(own), ...limits, dialects }),
        address,
        perturbation: ofAddress,
      };
    }),
  ];
}

function mcpConfig(options: ServeOptions): ServerConfig['mcp'] {
  return {
    hosts: options['mcp-host'].map((name) => name.toLowerCase()),
    tools: options['mcp-tools'],
    snippetTokens: options['mcp-snippet-tokens'],
  };
}

/** How requests are reranked that do not ask for it. */
function rerankDefault(options: ServeOptions, depth: number): ServerConfig['rerank'] {
  return options.rerank === undefined || depth === 0 ? null : { depth, allowFailure: options['rerank-allow-failure'] };
}

async function openRecorder(options: ServeOptions, note: (text: string) => void): Promise<QueryRecorder | undefined> {
  if (options.record === undefined) return undefined;
  return QueryRecorder.open({
    path: resolve(options.record),
    maxFileBytes: options['record-mib'] * MIB,
    keep: options['record-files'],
    compress: options['record-compress'],
    onRemoved: () => note(`--record: ${options.record} was removed; recording continues in a new file`),
    onLineCut: () => note(`--record: the unfinished last line of ${options.record} was cut off`),
    onRotationFailure: (error) =>
      note(
        `--record: ${(error as Error).message}; ${options.record} grows by a further --record-mib before it is renamed`,
      ),
    onCompressionFailure: (error) =>
      note(`--record: ${(error as Error).message}; a renamed file is not compressed until the next one is`),
    onFailure: (error) =>
      note(`--record: ${(error as Error).message}; queries are not recorded until the file can be written again`),
  });
}

function reloadedFiles(
  { options, keys, views }: ServeSettings,
  { listeners, recorder }: Pick<TrawlServer, 'listeners' | 'recorder'>,
): ReloadedFile[] {
  return [
    {
      option: options.views === undefined ? '--keys-file' : '--views and --keys-file',
      // Together, because a key can be bound to a view that is new.
      reload() {
        const next = keys === null ? null : (readKeys(options['keys-file']) ?? keys);
        views.reload(next);
        if (next !== null) keys?.replaceBy(next);
      },
    },
    {
      option: '--tls-cert and --tls-key',
      reload() {
        const tls = readTls(options['tls-cert'], options['tls-key']);
        if (tls === null) return;
        for (const { app } of listeners) (app.server as unknown as TlsServer).setSecureContext(tls);
      },
    },
    { option: '--record', reload: () => recorder?.reopen() },
  ];
}
