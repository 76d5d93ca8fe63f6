import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client';

/** One sample of a metric. */
export interface MetricLine {
  /** Only for a histogram's `…_bucket`, `…_sum` and `…_count`. */
  readonly metricName?: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
}

/**
 * A set of Prometheus metrics in its own registry. Only this file imports prom-client. Callers update a `counter`, `gauge` or
 * `histogram`; a `collected` metric is computed at each scrape.
 */
export class MetricSet {
  readonly #registry = new Registry();
  readonly #beforeScrape: (() => void)[] = [];

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    for (const update of this.#beforeScrape) update();
    return this.#registry.metrics();
  }

  /** Adds memory, CPU time, open files and event-loop delay of the process. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  counter<T extends string = never>(name: string, help: string, labelNames: readonly T[] = []): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  gauge(name: string, help: string): Gauge {
    return new Gauge({ name, help, registers: [this.#registry] });
  }

  histogram<T extends string = never>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: readonly T[] = [],
  ): Histogram<T> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }

  /** Adds a metric whose samples are computed at each scrape. */
  collected(
    name: string,
    help: string,
    type: 'counter' | 'gauge' | 'histogram',
    lines: () => readonly MetricLine[] | Promise<readonly MetricLine[]>,
  ): void {
    const get = async (): Promise<object> => ({ name, help, type, aggregator: 'sum', values: await lines() });
    this.#registry.registerMetric({ name, get } as unknown as Metric);
  }

  /** Calls `update` before each scrape. */
  beforeScrape(update: () => void): void {
    this.#beforeScrape.push(update);
  }
}
