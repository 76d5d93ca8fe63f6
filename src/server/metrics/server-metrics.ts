import type { Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import type { ErrorCode } from '../../base/errors.ts';
import type { QueryOutcome } from '../../search/calls/query-outcome.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { ORIGIN_FAULTS, type OriginFault } from '../recording/query-origin.ts';
import { type AddMetric, addIndexMetrics } from './index-metrics.ts';
import { ANSWER_STAGES, type AnswerTimings } from './server-timing.ts';

/** Buckets from a cached answer (0.1 ms) to minutes of waiting. */
const SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120,
];
const QUERIES = [1, 2, 4, 8, 16, 64, 256, 512, 1_024, 4_096, 16_384];
const ROWS = [0, 4, 8, 16, 32, 64, 128, 256, 1_024, 4_096, 65_536, 1_048_576];

const DISCONNECT_REASONS = ['stalled', 'too-many'] as const;
type DisconnectReason = (typeof DISCONNECT_REASONS)[number];

const RELOAD_RESULTS = ['done', 'failed'] as const;
type ReloadResult = (typeof RELOAD_RESULTS)[number];

export interface AnsweredRequest {
  readonly dialect: string;
  readonly queries: number;
  /** Queries that were truncated to the model's token limit. */
  readonly truncated: number;
  /** Queries that failed while others of the request did not. */
  readonly failed: number;
  readonly timings: AnswerTimings;
}

/** A listener's gauges, read at each scrape. */
interface ListenerGauges {
  readonly replyBytes: () => number;
  readonly bodyBytes: () => number;
  readonly server: Server;
}

/**
 * The metrics of a server for Prometheus, shared by its listeners. Labels are dialects, stages, error codes, statuses, indexes and
 * views, so that clients cannot create new time series.
 */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #beforeScrape: (() => void)[] = [];
  readonly #listeners: ListenerGauges[] = [];
  #holder: IndexRegistry | undefined;
  readonly #requests = this.#counter(
    'trawl_requests_total',
    'Requests on the search routes, by dialect and HTTP status; 499 for clients that disconnected.',
    'dialect',
    'status',
  );
  readonly #queries = this.#counter(
    'trawl_queries_total',
    'Queries or texts of answered requests, by dialect.',
    'dialect',
  );
  readonly #errors = this.#counter(
    'trawl_errors_total',
    'Requests that ended in an error, by code; CANCELLED for clients that disconnected.',
    'code',
  );
  readonly #stages = this.#histogram(
    'trawl_stage_seconds',
    'Time of answered requests, by stage; total is from the headers to the finished reply.',
    SECONDS,
    'stage',
  );
  readonly #sizes = this.#histogram('trawl_request_queries', 'Queries per request.', QUERIES);
  readonly #rescored = this.#histogram(
    'trawl_query_rescored_rows',
    'Rows scored exactly per query, in addition to the scan of the codes; for a cached answer, the rows of its search.',
    ROWS,
  );
  readonly #truncated = this.#counter('trawl_truncated_queries_total', "Queries truncated to the model's token limit.");
  readonly #failed = this.#counter(
    'trawl_failed_queries_total',
    'Queries that failed while others of their request did not.',
  );
  readonly #drops = this.#counter(
    'trawl_dropped_lines_total',
    'Lines of the log and of the record that were lost: the disk was too slow or full, or the file was removed.',
    'what',
  );
  readonly #unrecorded = this.#counter(
    'trawl_unrecorded_values_total',
    'Values of requests (trajectory, turn and the like) that --record left out, by reason.',
    'reason',
  );
  readonly #perturbed = this.#counter(
    'trawl_perturbed_total',
    'What the server did on purpose (--perturb): queries for drop-gold and distractors, requests for delay and fail.',
    'perturbation',
  );
  readonly #disconnects = this.#counter(
    'trawl_disconnects_total',
    'Connections closed by the server: stalled (the client stopped reading its response), too-many (over the limit).',
    'reason',
  );
  readonly #views = this.#counter('trawl_view_requests_total', 'Answered requests within a view, by view.', 'view');
  readonly #inFlight = new Gauge({
    name: 'trawl_requests_in_flight',
    help: 'Requests in flight on the search routes.',
    registers: [this.#registry],
  });
  readonly #reloads = this.#counter('trawl_index_reloads_total', 'Reloads of an index, by result.', 'index', 'result');

  /** @param options.process adds metrics of the process. */
  constructor({ process = false }: { readonly process?: boolean } = {}) {
    // Memory, CPU time, open files and event-loop delay.
    if (process) collectDefaultMetrics({ register: this.#registry });
    // Creates the time series with 0: Prometheus sees no increase in a series that begins at 1.
    for (const reason of DISCONNECT_REASONS) this.disconnected(reason, 0);
    for (const reason of ORIGIN_FAULTS) this.unrecorded(reason, 0);
    this.#beforeScrape.push(() => {
      for (const { name } of this.#holder?.slots ?? []) {
        for (const result of RELOAD_RESULTS) this.#reloads.inc({ index: name, result }, 0);
      }
    });
    this.#addListeners();
    addIndexMetrics(this.#collected, () => this.#holder);
  }

  #counter<T extends string = never>(name: string, help: string, ...labelNames: readonly T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram<T extends string = never>(
    name: string,
    help: string,
    buckets: number[],
    ...labelNames: readonly T[]
  ): Histogram<T> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }

  readonly #collected: AddMetric = (name, help, type, lines) => {
    const get = async (): Promise<object> => ({ name, help, type, aggregator: 'sum', values: await lines() });
    this.#registry.registerMetric({ name, get } as unknown as Metric);
  };

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    for (const update of this.#beforeScrape) update();
    return this.#registry.metrics();
  }

  watch(holder: IndexRegistry, listener: ListenerGauges): void {
    this.#holder = holder;
    this.#listeners.push(listener);
  }

  requestStarted(): void {
    this.#inFlight.inc();
  }

  requestEnded(dialect: string, status: number): void {
    this.#inFlight.dec();
    this.#requests.inc({ dialect, status });
  }

  answered({ dialect, queries, truncated, failed, timings }: AnsweredRequest): void {
    this.#queries.inc({ dialect }, queries);
    this.#sizes.observe(queries);
    this.#truncated.inc(truncated);
    this.#failed.inc(failed);
    for (const stage of ANSWER_STAGES) this.#stages.observe({ stage }, timings[stage] / 1000);
  }

  refused(code: ErrorCode): void {
    this.#errors.inc({ code });
  }

  unrecorded(reason: OriginFault, values: number): void {
    this.#unrecorded.inc({ reason }, values);
  }

  perturbed(perturbation: string, times = 1): void {
    this.#perturbed.inc({ perturbation }, times);
  }

  searched(outcomes: readonly QueryOutcome[]): void {
    for (const outcome of outcomes) {
      if (outcome.ok && outcome.certificate.rescored !== null) this.#rescored.observe(outcome.certificate.rescored);
    }
  }

  viewed(view: string): void {
    this.#views.inc({ view });
  }

  disconnected(reason: DisconnectReason, times = 1): void {
    this.#disconnects.inc({ reason }, times);
  }

  reloaded(index: string, result: ReloadResult): void {
    this.#reloads.inc({ index, result });
  }

  /** @param total dropped lines since the start. */
  dropped(what: 'log' | 'record', total: () => number): void {
    let counted = 0;
    this.#beforeScrape.push(() => {
      const now = total();
      this.#drops.inc({ what }, now - counted);
      counted = now;
    });
  }

  #addListeners(): void {
    const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
    const addGauge = (name: string, help: string, value: () => number | Promise<number>): void =>
      this.#collected(name, help, 'gauge', async () => [{ value: await value(), labels: {} }]);
    addGauge('trawl_reply_bytes', 'Bytes of replies that clients have not read yet.', () =>
      sum(this.#listeners.map(({ replyBytes }) => replyBytes())),
    );
    addGauge('trawl_body_bytes', 'Bytes of request bodies that are being received.', () =>
      sum(this.#listeners.map(({ bodyBytes }) => bodyBytes())),
    );
    addGauge('trawl_connections', 'Open connections.', async () =>
      sum(await Promise.all(this.#listeners.map(({ server }) => connections(server)))),
    );
    addGauge('trawl_ready', '1 while requests are answered.', () =>
      this.#holder?.state === 'ready' && this.#holder.retriever?.failure === undefined ? 1 : 0,
    );
  }
}

function connections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((error, count) => resolve(error === null ? count : 0)));
}
