import { resolve } from 'node:path';
import type { Server as TlsServer } from 'node:tls';
import { WritableFolder } from '../../indexer/writable/writable-folder.ts';
import { asTrawlError } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';
import { packageVersion } from '../../src/base/package-root.ts';
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
import { Perturbation } from '../../training/perturbation/perturbation.ts';
import type { GoldPassages } from '../../training/perturbation/request-perturbation.ts';
import { perturbationSettings } from '../../training/perturbation/settings.ts';
import { filterOption } from '../options/filter-option.ts';
import { hybridOptions } from '../options/hybrid-options.ts';
import { openReranker } from '../options/rerank-options.ts';
import { retrieverOptions } from '../options/retriever-options.ts';
import type { AnyContext } from '../program/command.ts';
import type { ExtraListener } from './extra-listener.ts';
import { perturbRates, readGoldPassages } from './perturb-options.ts';
import { bundleOpener } from './replayed-bundle.ts';
import { MIB, type ServeOptions } from './serve-options.ts';
import { readKeys, readTls, type ServeSettings } from './serve-settings.ts';
import { indexOpener, SharedReranker } from './served-indexes.ts';
import { type ServerLog, serverLog } from './server-log.ts';

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
  /** Files that a reload reads or opens again, such as the keys file, by the option that names them. If one throws, its old content stays in use. */
  readonly files: readonly { readonly option: string; reload(): void | Promise<void> }[];
}

type Host = Pick<AnyContext, 'signal' | 'note'>;

/** Creates the parts of the server, which does not listen yet and has no open index. */
export async function makeServer(settings: ServeSettings, { signal, note }: Host): Promise<TrawlServer> {
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

function prepareWritable({ writable }: ServeOptions, log: ServerLog | undefined, note: Host['note']) {
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
  { signal, note }: Host,
) {
  // Do not load an encoder that no address uses.
  const onlyBm25 =
    options.mode === 'bm25' && extraListeners.every(({ settings: { mode = 'bm25' } }) => mode === 'bm25');
  const retrieving = {
    ...retrieverOptions(options),
    fieldRanking,
    cutTokenizer: options['cut-tokenizer'],
    // An index that lacks a list for hybrid search is refused now, not with each request.
    modes: onlyBm25 || options.mode === 'hybrid' ? [options.mode!] : undefined,
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
    bm25Order: options['bm25-order'],
    maxK: options['max-k'],
    maxQueries: options['max-queries'],
    maxQueryChars: options['max-query-chars'],
    maxBodyBytes: options['max-body-mib'] * MIB,
    mcp: options.mcp
      ? {
          hosts: options['mcp-host'].map((name) => name.toLowerCase()),
          tools: options['mcp-tools'],
          snippetTokens: options['mcp-snippet-tokens'],
        }
      : null,
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
  const { 'perturb-seed': seed, 'perturb-distractors': distractors, 'perturb-delay-ms': delayMs } = options;
  const perturbing = (rates: ReturnType<typeof perturbRates>): Perturbation =>
    new Perturbation(perturbationSettings(rates, { seed, distractors, delayMs }), gold);
  const forAll = options.perturb === undefined ? null : perturbing(perturbRates(options.perturb));
  const main: ExtraListener = { host: options.host, port: options.port, dialect: undefined, settings: {} };
  return [main, ...extraListeners].map((address) => {
    const { rerankDepth: depth = options['rerank-depth'], view, perturb, ...own } = address.settings;
    const perturbation = perturb === undefined ? forAll : perturb && perturbing(perturb);
    const app = buildApp(holder, {
      ...config,
      ...defined(own),
      filter: bothFilters(filterOption(options.filter), own.filter) ?? null,
      views: [options.view, view].filter((each) => each !== undefined),
      hybrid: mergedHybrid(own.hybrid ?? {}, hybridOptions(options)),
      // How requests are reranked that do not ask for it.
      rerank:
        options.rerank === undefined || depth === 0 ? null : { depth, allowFailure: options['rerank-allow-failure'] },
      searchHook: perturbation,
      dialects: preferredFor(address.dialect, options.dialect),
    });
    return { app, address, perturbation };
  });
}

async function openRecorder(options: ServeOptions, note: (text: string) => void): Promise<QueryRecorder | undefined> {
  if (options.record === undefined) return undefined;
  const failed = (what: string) => (error: unknown) => note(`--record: ${(error as Error).message}; ${what}`);
  return QueryRecorder.open({
    path: resolve(options.record),
    maxFileBytes: options['record-mib'] * MIB,
    keep: options['record-files'],
    compress: options['record-compress'],
    onRemoved: () => note(`--record: ${options.record} was removed; recording continues in a new file`),
    onLineCut: () => note(`--record: the unfinished last line of ${options.record} was cut off`),
    onRotationFailure: failed(`${options.record} grows by a further --record-mib before it is renamed`),
    onCompressionFailure: failed('a renamed file is not compressed until the next one is'),
    onFailure: failed('queries are not recorded until the file can be written again'),
  });
}

/** How often a failure to send traces is reported, in milliseconds. */
const TRACE_FAILURE_EVERY_MS = 60_000;

/** The tracer of `--trace-to`; undefined without it. Failures are logged once a minute. */
async function openTracer(
  { 'trace-to': endpoint, 'trace-every': every }: ServeOptions,
  log: ServerLog | undefined,
  note: (text: string) => void,
): Promise<RequestTracer | undefined> {
  if (endpoint === undefined) return undefined;
  const { openOtlpTracer } = await import('../../src/server/tracing/otlp-tracer.ts');
  let reportedAt = Number.NEGATIVE_INFINITY;
  return openOtlpTracer({
    endpoint,
    share: 1 / every,
    version: packageVersion,
    onFailure(reason) {
      if (performance.now() - reportedAt < TRACE_FAILURE_EVERY_MS) return;
      reportedAt = performance.now();
      if (log === undefined) note(`--trace-to: traces are lost: ${reason}`);
      else log.logger.warn({ reason, collector: endpoint }, 'traces are lost');
    },
  });
}

function reloadedFiles(
  { options, keys, views }: ServeSettings,
  { listeners, recorder }: Pick<TrawlServer, 'listeners' | 'recorder'>,
): TrawlServer['files'] {
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
