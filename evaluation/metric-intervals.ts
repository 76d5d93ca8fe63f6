import { bootstrapIntervals, type Interval } from './bootstrap.ts';
import type { Metrics } from './evaluate-run.ts';
import { groupByQuestion, questionSums } from './question-sums.ts';

/** Metric name → the 95 % interval of its mean; null without one. */
export type MetricIntervals = Readonly<Record<string, Interval | null>>;

/**
 * The interval of the mean of every metric, by `bootstrapIntervals`, over the queries that have it. A metric of fewer than two questions
 * has none, nor has one with the same value for all.
 *
 * @param perQuery query id → its metrics.
 * @param questionOf the id of the question that a query id stands for. Queries of one question are drawn together.
 */
export function metricIntervals(
  perQuery: ReadonlyMap<string, Metrics>,
  seed: number,
  questionOf: (id: string) => string = (id) => id,
): MetricIntervals {
  // Metrics that the same queries have are drawn together. Metric → ids of its queries.
  const have = new Map<string, string[]>();
  for (const [id, metrics] of perQuery) {
    for (const name of Object.keys(metrics)) {
      const ids = have.get(name);
      if (ids === undefined) have.set(name, [id]);
      else ids.push(id);
    }
  }
  const groups = new Map<string, string[]>();
  for (const [name, ids] of have) {
    const key = JSON.stringify(ids);
    groups.set(key, [...(groups.get(key) ?? []), name]);
  }
  const intervals = new Map<string, Interval | null>();
  for (const names of groups.values()) {
    const ids = have.get(names[0]!)!;
    const questions = groupByQuestion(ids, questionOf);
    const columns = names.map((name) =>
      questionSums(
        ids.map((id) => perQuery.get(id)![name]!),
        questions,
      ),
    );
    const drawn = bootstrapIntervals(columns, seed, questions.sizes);
    for (const [i, name] of names.entries()) intervals.set(name, drawn[i]!);
  }
  return Object.fromEntries(Array.from(have.keys(), (name) => [name, intervals.get(name)!]));
}
