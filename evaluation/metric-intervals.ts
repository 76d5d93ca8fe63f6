import { bootstrapIntervals, type Interval } from './bootstrap.ts';
import type { Metrics } from './evaluate-run.ts';

/** Metric name → the 95 % interval of its mean. */
export type MetricIntervals = Readonly<Record<string, Interval>>;

/**
 * The interval of the mean of every metric, by `bootstrapIntervals`, over the queries that have it. A metric of fewer than two queries
 * has none.
 */
export function metricIntervals(queries: Iterable<Metrics>, seed: number): MetricIntervals {
  const all = [...queries];
  const columns = new Map<string, number[]>();
  // Metrics that the same queries have are drawn together. `have`: metric → positions of its queries.
  const have = new Map<string, number[]>();
  for (const [position, metrics] of all.entries()) {
    for (const [name, value] of Object.entries(metrics)) {
      if (!columns.has(name)) {
        columns.set(name, []);
        have.set(name, []);
      }
      columns.get(name)!.push(value);
      have.get(name)!.push(position);
    }
  }
  const groups = new Map<string, string[]>();
  for (const name of columns.keys()) {
    const key = have.get(name)!.join();
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  const intervals = new Map<string, Interval>();
  for (const names of groups.values()) {
    if (columns.get(names[0]!)!.length < 2) continue;
    const drawn = bootstrapIntervals(
      names.map((name) => Float64Array.from(columns.get(name)!)),
      seed,
    );
    for (const [i, name] of names.entries()) intervals.set(name, drawn[i]!);
  }
  return Object.fromEntries(
    [...columns.keys()].flatMap((name) => (intervals.has(name) ? [[name, intervals.get(name)!]] : [])),
  );
}
