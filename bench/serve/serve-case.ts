import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { type LatencyStages, latencyStages } from './latency-stages.ts';
import type { LoadResult } from './load-plan.ts';
import type { LoadDefinition, ServeLoad } from './serve-loads.ts';

/** The result of an engine under a load; bench/server.md defines the fields. Null: unknown. */
export interface ServeRecord {
  readonly case: 'serve';
  readonly engine: string;
  readonly load: ServeLoad;
  readonly clients: number;
  readonly runs: number;
  readonly requests: number;
  readonly queriesPerS: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly overheadP50Ms: number | null;
  readonly errors: number;
  readonly errorCounts: Readonly<Record<string, number>>;
  readonly wrong: number;
  readonly ratioToBaseline: number | null;
  /** What the latencies at some percentiles consist of; null if the server does not say. */
  readonly stages: LatencyStages | null;
  /** Peak resident memory of the server; null if unknown. */
  readonly residentBytes: number | null;
}

/** The repetitions of a load on an engine. */
export interface ServeMeasurement {
  readonly engine: string;
  readonly isBaseline: boolean;
  readonly results: readonly LoadResult[];
  readonly wrong: number;
  readonly residentBytes: number | null;
}

/** The records of a load. An engine that answered nothing gets no record. */
export function serveRecords(
  load: ServeLoad,
  definition: LoadDefinition,
  measurements: readonly ServeMeasurement[],
): ServeRecord[] {
  const answered = measurements.filter(({ results }) => results.some(({ latenciesMs }) => latenciesMs.length > 0));
  const figures = answered.map((measurement) => ({ measurement, ...figuresOf(measurement) }));
  const baseline = figures.find(({ measurement }) => measurement.isBaseline);
  return figures.map(({ measurement, ...own }) => ({
    case: 'serve',
    engine: measurement.engine,
    load,
    clients: definition.clients,
    runs: measurement.results.length,
    ...own,
    wrong: measurement.wrong,
    stages: latencyStages(measurement.results),
    residentBytes: measurement.residentBytes,
    ratioToBaseline:
      baseline === undefined
        ? null
        : definition.ratio === 'throughput'
          ? own.queriesPerS / baseline.queriesPerS
          : baseline.p50Ms / own.p50Ms,
  }));
}

function figuresOf({ results }: ServeMeasurement) {
  const latencies = sortedSamples(results.flatMap(({ latenciesMs }) => latenciesMs));
  const overheads = results.flatMap(({ overheadsMs }) => overheadsMs);
  const errorCounts: Record<string, number> = {};
  for (const { errors } of results) {
    for (const [what, count] of Object.entries(errors)) errorCounts[what] = (errorCounts[what] ?? 0) + count;
  }
  return {
    requests: results.reduce((sum, { requests }) => sum + requests, 0),
    queriesPerS: median(sortedSamples(results.map(({ queries, elapsedMs }) => queries / (elapsedMs / 1000)))),
    p50Ms: median(latencies),
    p99Ms: percentile(latencies, 99),
    maxMs: latencies.at(-1)!,
    overheadP50Ms: overheads.length === 0 ? null : median(sortedSamples(overheads)),
    errors: Object.values(errorCounts).reduce((sum, count) => sum + count, 0),
    errorCounts,
  };
}
