import type { Server } from 'node:http';
import type { ErrorCode } from '../errors.ts';
import type { RetrieveResult } from '../retrieval/retriever.ts';
import { addIndexMetrics } from './index-metrics.ts';
import { MetricSet } from './prometheus.ts';
import type { RetrieverHolder } from './retriever-holder.ts';
import { ANSWER_STAGES, type AnswerTimings } from './server-timing.ts';

/** From a tenth of a millisecond, which a cached answer takes, to minutes of waiting. */
const SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120,
];
const QUERIES = [1, 2, 4, 8, 16, 64, 256, 512, 1_024, 4_096, 16_384];
const ROWS = [0, 4, 8, 16, 32, 64, 128, 256, 1_024, 4_096, 65_536, 1_048_576];

/** Why a connection is cut. */
const CUTS = ['stalled', 'too-many'] as const;

export interface AnsweredRequest {
  /** Name of the dialect. */
  readonly dialect: string;
  readonly queries: number;
  /** Queries whose text was cut, and that failed alone. */
  readonly truncated: number;
  readonly failed: number;
  readonly timings: AnswerTimings;
}

/** Something that counts, read when the metrics are asked for. */
interface Source {
  readonly replyBytes: () => number;
  readonly bodyBytes: () => number;
  readonly server: Server;
}

/**
 * What a server counts. Labels are names of dialects, stages, error codes, statuses and indexes: a client cannot make new ones.
 * Shared by the listeners of one process.
 */
export class ServerMetrics {
  readonly #metrics = new MetricSet();
  readonly #sources: Source[] = [];
  #holder: RetrieverHolder | undefined;
  readonly #requests = this.#metrics.counter(
    'trawl_requests_total',
    'Requests answered on the search routes, by dialect and HTTP status.',
    ['dialect', 'status'],
  );
  readonly #queries = this.#metrics.counter(
    'trawl_queries_total',
    'Queries and texts of answered requests, by dialect.',
    ['dialect'],
  );
  readonly #errors = this.#metrics.counter(
    'trawl_errors_total',
    'Requests that ended in an error, by its code; CANCELLED are clients that hung up.',
    ['code'],
  );
  readonly #stages = this.#metrics.histogram(
    'trawl_stage_seconds',
    'Time of answered requests by stage; total runs from the headers to the written reply.',
    SECONDS,
    ['stage'],
  );
  readonly #sizes = this.#metrics.histogram('trawl_request_queries', 'Queries of one request.', QUERIES);
  readonly #rescored = this.#metrics.histogram(
    'trawl_query_rescored_rows',
    'Rows scored exactly for the answer of one query beside the scan of the codes; an answer from the cache tells those of its search.',
    ROWS,
  );
  readonly #truncated = this.#metrics.counter('trawl_truncated_queries_total', "Queries cut to the model's limit.");
  readonly #failed = this.#metrics.counter(
    'trawl_failed_queries_total',
    'Queries that failed while others of their request did not.',
  );
  readonly #drops = this.#metrics.counter(
    'trawl_dropped_lines_total',
    'Lines of the log and of the record that were dropped, because they could not be written as fast as they came.',
    ['what'],
  );
  readonly #cuts = this.#metrics.counter(
    'trawl_connections_cut_total',
    'Connections cut: stalled (its client read nothing of an answer for too long), too-many (over the limit).',
    ['reason'],
  );
  readonly #inFlight = this.#metrics.gauge(
    'trawl_requests_in_flight',
    'Requests on the search routes that are being answered.',
  );
  readonly #reloads = this.#metrics.counter('trawl_index_reloads_total', 'Reloads of an index, by how they ended.', [
    'index',
    'result',
  ]);

  /** `process`: with the figures of the whole process. */
  constructor({ process = false }: { readonly process?: boolean } = {}) {
    if (process) this.#metrics.watchProcess();
    // A rise from nothing is no rise to Prometheus.
    for (const reason of CUTS) this.#cuts.inc({ reason }, 0);
    this.#addConnections();
    addIndexMetrics(this.#metrics, () => this.#holder);
  }

  get contentType(): string {
    return this.#metrics.contentType;
  }

  text(): Promise<string> {
    return this.#metrics.text();
  }

  watch(holder: RetrieverHolder, source: Source): void {
    this.#holder = holder;
    this.#sources.push(source);
  }

  begun(): void {
    this.#inFlight.inc();
  }

  ended(dialect: string, status: number): void {
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

  retrieved({ outcomes }: RetrieveResult): void {
    for (const outcome of outcomes) {
      if (outcome.ok && outcome.certificate.rescored !== null) this.#rescored.observe(outcome.certificate.rescored);
    }
  }

  cut(reason: (typeof CUTS)[number]): void {
    this.#cuts.inc({ reason });
  }

  reloaded(index: string, result: 'done' | 'failed'): void {
    this.#reloads.inc({ index, result });
  }

  /** `total`: since the start. */
  dropped(what: 'log' | 'record', total: () => number): void {
    let told = 0;
    // A counter can only be told how much more.
    this.#metrics.beforeTelling(() => {
      const now = total();
      this.#drops.inc({ what }, now - told);
      told = now;
    });
  }

  #addConnections(): void {
    const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
    const tell = (name: string, help: string, value: () => number | Promise<number>): void =>
      this.#metrics.told(name, help, 'gauge', async () => [{ value: await value(), labels: {} }]);
    tell('trawl_reply_bytes', 'Bytes of replies that wait for their clients to read them.', () =>
      sum(this.#sources.map(({ replyBytes }) => replyBytes())),
    );
    tell('trawl_body_bytes', 'Bytes of request bodies that are being received.', () =>
      sum(this.#sources.map(({ bodyBytes }) => bodyBytes())),
    );
    tell('trawl_connections', 'Open connections.', async () =>
      sum(await Promise.all(this.#sources.map(({ server }) => connections(server)))),
    );
    tell('trawl_ready', '1 while requests are answered.', () =>
      this.#holder?.state === 'ready' && this.#holder.retriever?.failure === undefined ? 1 : 0,
    );
  }
}

function connections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((error, count) => resolve(error === null ? count : 0)));
}
