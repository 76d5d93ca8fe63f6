import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client';

/** A value of a metric. */
export interface MetricLine {
  /** Where it is not the metric's own: a histogram's `…_bucket`, `…_sum`, `…_count`. */
  readonly metricName?: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
}

/**
 * Metrics in Prometheus' form; the only file that knows prom-client. Nothing is global: each set has its own registry. Some
 * metrics are counted as things happen, others are read when they are asked for (`told`).
 */
export class MetricSet {
  readonly #registry = new Registry();
  readonly #refreshes: (() => void)[] = [];

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    for (const refresh of this.#refreshes) refresh();
    return this.#registry.metrics();
  }

  /** Memory, processor time, files and event-loop delay of the whole process. It never stops watching. */
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

  /** Read when it is asked for. */
  told(
    name: string,
    help: string,
    type: 'counter' | 'gauge' | 'histogram',
    lines: () => readonly MetricLine[] | Promise<readonly MetricLine[]>,
  ): void {
    const get = async (): Promise<object> => ({ name, help, type, aggregator: 'sum', values: await lines() });
    this.#registry.registerMetric({ name, get } as unknown as Metric);
  }

  /** Run before the metrics are told. */
  beforeTelling(refresh: () => void): void {
    this.#refreshes.push(refresh);
  }
}
