import type { Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import type { ErrorCode } from '../errors.ts';
import type { RetrieveResult, Retriever, RetrieverStatistics } from '../retrieval/retriever.ts';
import type { RetrieverHolder } from './retriever-holder.ts';
import { ANSWER_STAGES, type AnswerTimings } from './server-timing.ts';

/** From a tenth of a millisecond, which a cached answer takes, to minutes of waiting. */
const SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120,
];
const QUERIES = [1, 2, 4, 8, 16, 64, 256, 512, 1_024, 4_096, 16_384];
/** As `SearchLoad.batchSizes` counts them: a batch has at most 1,024 queries. */
const BATCH_SIZES = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023];
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
 * What a server counts, in Prometheus' form. Labels are names of dialects, stages, error codes, statuses and indexes: a
 * client cannot make new ones. Nothing is global: each has its own registry, shared by the listeners of one process.
 */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #sources: Source[] = [];
  /** Run before the metrics are told. */
  readonly #refreshes: (() => void)[] = [];
  #holder: RetrieverHolder | undefined;
  readonly #requests;
  readonly #queries;
  readonly #errors;
  readonly #stages;
  readonly #sizes;
  readonly #rescored;
  readonly #truncated;
  readonly #failed;
  readonly #inFlight;
  readonly #reloads;
  readonly #drops;
  readonly #cuts;

  /** `process`: with memory, processor time, files and event-loop delay of the whole process. These never stop watching. */
  constructor({ process = false }: { readonly process?: boolean } = {}) {
    const registers = [this.#registry];
    if (process) collectDefaultMetrics({ register: this.#registry });
    this.#requests = new Counter({
      name: 'trawl_requests_total',
      help: 'Requests answered on the search routes, by dialect and HTTP status.',
      labelNames: ['dialect', 'status'],
      registers,
    });
    this.#queries = new Counter({
      name: 'trawl_queries_total',
      help: 'Queries and texts of answered requests, by dialect.',
      labelNames: ['dialect'],
      registers,
    });
    this.#errors = new Counter({
      name: 'trawl_errors_total',
      help: 'Requests that ended in an error, by its code; CANCELLED are clients that hung up.',
      labelNames: ['code'],
      registers,
    });
    this.#stages = new Histogram({
      name: 'trawl_stage_seconds',
      help: 'Time of answered requests by stage; total runs from the headers to the written reply.',
      labelNames: ['stage'],
      buckets: SECONDS,
      registers,
    });
    this.#sizes = new Histogram({
      name: 'trawl_request_queries',
      help: 'Queries of one request.',
      buckets: QUERIES,
      registers,
    });
    this.#rescored = new Histogram({
      name: 'trawl_query_rescored_rows',
      help: 'Rows scored exactly for the answer of one query beside the scan of the codes; an answer from the cache tells those of its search.',
      buckets: ROWS,
      registers,
    });
    this.#truncated = counter('trawl_truncated_queries_total', "Queries cut to the model's limit.", registers);
    this.#failed = counter(
      'trawl_failed_queries_total',
      'Queries that failed while others of their request did not.',
      registers,
    );
    this.#drops = new Counter({
      name: 'trawl_dropped_lines_total',
      help: 'Lines of the log and of the record that were dropped, because they could not be written as fast as they came.',
      labelNames: ['what'],
      registers,
    });
    this.#cuts = new Counter({
      name: 'trawl_connections_cut_total',
      help: 'Connections cut: stalled (its client read nothing of an answer for too long), too-many (over the limit).',
      labelNames: ['reason'],
      registers,
    });
    // A rise from nothing is no rise to Prometheus.
    for (const reason of CUTS) this.#cuts.inc({ reason }, 0);
    this.#inFlight = new Gauge({
      name: 'trawl_requests_in_flight',
      help: 'Requests on the search routes that are being answered.',
      registers,
    });
    this.#reloads = new Counter({
      name: 'trawl_index_reloads_total',
      help: 'Reloads of an index, by how they ended.',
      labelNames: ['index', 'result'],
      registers,
    });
    this.#gauges(registers);
    this.#indexGauges(registers);
    this.#statistics();
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    for (const refresh of this.#refreshes) refresh();
    return this.#registry.metrics();
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
    this.#refreshes.push(() => {
      const now = total();
      this.#drops.inc({ what }, now - told);
      told = now;
    });
  }

  #gauges(registers: Registry[]): void {
    const sources = this.#sources;
    const sum = (of: (source: Source) => number): number => sources.reduce((all, source) => all + of(source), 0);
    gauge('trawl_reply_bytes', 'Bytes of replies that wait for their clients to read them.', registers, () =>
      sum(({ replyBytes }) => replyBytes()),
    );
    gauge('trawl_body_bytes', 'Bytes of request bodies that are being received.', registers, () =>
      sum(({ bodyBytes }) => bodyBytes()),
    );
    new Gauge({
      name: 'trawl_connections',
      help: 'Open connections.',
      registers,
      async collect() {
        this.set((await Promise.all(sources.map(({ server }) => connections(server)))).reduce((a, b) => a + b, 0));
      },
    });
    gauge('trawl_ready', '1 while requests are answered.', registers, () =>
      this.#holder?.state === 'ready' && this.#holder.retriever?.failure === undefined ? 1 : 0,
    );
  }

  #indexGauges(registers: Registry[]): void {
    const forEachIndex = (set: (name: string, retriever: Retriever, draining: number) => void): void => {
      for (const { name, retriever, draining } of this.#holder?.slots ?? []) {
        if (retriever !== undefined) set(name, retriever, draining);
      }
    };
    new Gauge({
      name: 'trawl_index_info',
      help: 'Always 1; which generation an index has, and which model.',
      labelNames: ['index', 'generation', 'model', 'metric'],
      registers,
      collect() {
        this.reset();
        forEachIndex((index, { info: { generation, model, metric } }) =>
          this.set({ index, generation, model: model.name, metric }, 1),
        );
      },
    });
    const facts: readonly [string, string, (retriever: Retriever, draining: number) => number][] = [
      ['trawl_index_rows', 'Passages of an index.', ({ info }) => info.rows],
      [
        'trawl_index_resident_bytes',
        "Bytes of an index's files that want to stay in memory.",
        ({ info }) => info.memory?.residentBytes ?? 0,
      ],
      [
        'trawl_index_mapped_bytes',
        "Bytes of an index's files that are mapped and read here and there.",
        ({ info }) => (info.memory?.mappedBytes ?? 0) + (info.memory?.touchedBytes ?? 0),
      ],
      [
        'trawl_index_draining',
        'Generations of an index that were replaced and still answer requests.',
        (_retriever, draining) => draining,
      ],
    ];
    for (const [name, help, value] of facts) {
      new Gauge({
        name,
        help,
        labelNames: ['index'],
        registers,
        collect() {
          this.reset();
          forEachIndex((index, retriever, draining) => this.set({ index }, value(retriever, draining)));
        },
      });
    }
  }

  /** What the retrievers count themselves, through reloads. */
  #statistics(): void {
    const add = (name: string, help: string, type: 'counter' | 'gauge', values: Values): void =>
      this.#tell(name, help, type, (statistics) =>
        Object.entries(values(statistics)).map(([stage, value]) => ({ value, labels: stage === '' ? {} : { stage } })),
      );
    add('trawl_queue_queries', 'Queries that wait, by what they wait for.', 'gauge', ({ encoder, search }) => ({
      embed: encoder.waitingTexts,
      search: search.waitingQueries,
    }));
    add('trawl_queue_expected_wait_seconds', 'Expected time until those are done.', 'gauge', ({ encoder, search }) => ({
      embed: encoder.expectedWaitMs / 1000,
      search: search.expectedWaitMs / 1000,
    }));
    add('trawl_batches_total', 'Batches, by who took them.', 'counter', ({ encoder, search }) => ({
      embed: encoder.chunks,
      search: search.batches,
    }));
    add('trawl_batch_queries_total', 'Queries of those batches.', 'counter', ({ encoder, search }) => ({
      embed: encoder.texts,
      search: search.queries,
    }));
    const batches = 'trawl_search_batch_queries';
    this.#tell(batches, 'Queries of one batch of the engine.', 'histogram', ({ search }) => {
      let count = 0;
      return [
        ...BATCH_SIZES.map((le, i) => {
          count += search.batchSizes[i] ?? 0;
          return { metricName: `${batches}_bucket`, value: count, labels: { le } };
        }),
        { metricName: `${batches}_bucket`, value: search.batches, labels: { le: '+Inf' } },
        { metricName: `${batches}_sum`, value: search.queries, labels: {} },
        { metricName: `${batches}_count`, value: search.batches, labels: {} },
      ];
    });
    add(
      'trawl_abandoned_queries_total',
      'Queries dropped before they cost anything.',
      'counter',
      ({ encoder, search }) => ({
        embed: encoder.droppedTexts,
        search: search.droppedQueries,
      }),
    );
    add('trawl_full_scans_total', 'Queries for which every row was scored.', 'counter', ({ search }) => ({
      '': search.fullScans,
    }));
    add('trawl_rescored_rows_total', 'Rows scored exactly beside the scans of the codes.', 'counter', ({ search }) => ({
      '': search.rescoredRows,
    }));
    add('trawl_waiting_calls', 'Calls that are not answered yet.', 'gauge', ({ waiting }) => ({ '': waiting.calls }));
    add('trawl_waiting_bytes', 'Bytes of their queries and expected answers.', 'gauge', ({ waiting }) => ({
      '': waiting.bytes,
    }));
    add('trawl_waiting_bytes_max', 'Bytes from which on calls are refused.', 'gauge', ({ waiting }) => ({
      '': waiting.maxBytes,
    }));
    add('trawl_cached_queries_total', 'Queries answered from the cache.', 'counter', ({ sharing }) => ({
      '': sharing.cached,
    }));
    add('trawl_joined_queries_total', 'Queries answered with an equal one under way.', 'counter', ({ sharing }) => ({
      '': sharing.joined,
    }));
    add('trawl_computed_queries_total', 'Queries that were computed.', 'counter', ({ sharing }) => ({
      '': sharing.computed,
    }));
    add('trawl_cache_entries', 'Answers in the cache.', 'gauge', ({ sharing }) => ({ '': sharing.cacheEntries }));
    add('trawl_cache_bytes', 'Bytes of the answers in the cache.', 'gauge', ({ sharing }) => ({
      '': sharing.cacheBytes,
    }));
  }

  /** A metric read from the statistics of all indexes when it is asked for. */
  #tell(
    name: string,
    help: string,
    type: 'counter' | 'gauge' | 'histogram',
    lines: (statistics: RetrieverStatistics) => readonly Line[],
  ): void {
    const get = async (): Promise<object> => ({
      name,
      help,
      type,
      aggregator: 'sum',
      values: (this.#holder?.slots ?? []).flatMap(({ name: index, statistics }) =>
        statistics === undefined
          ? []
          : lines(statistics).map(({ labels, ...line }) => ({ ...line, labels: { index, ...labels } })),
      ),
    });
    this.#registry.registerMetric({ name, get } as unknown as Metric);
  }
}

/** A line of a metric, but for the label `index`. */
interface Line {
  readonly metricName?: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
}

/** Values by stage; the empty name for one that has none. */
type Values = (statistics: RetrieverStatistics) => Readonly<Record<string, number>>;

function counter(name: string, help: string, registers: Registry[]): Counter {
  return new Counter({ name, help, registers });
}

function gauge(name: string, help: string, registers: Registry[], value: () => number): void {
  new Gauge({
    name,
    help,
    registers,
    collect() {
      this.set(value());
    },
  });
}

function connections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((error, count) => resolve(error === null ? count : 0)));
}
