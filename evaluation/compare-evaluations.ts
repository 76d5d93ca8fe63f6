import type { Evaluation, Metrics } from './evaluate-run.ts';
import {
  bootstrapIntervals,
  groupByQuestion,
  type Interval,
  meanOf,
  questionSums,
  ROUNDING,
  randomisationTest,
} from './significance.ts';

export type ComparedMetric = ReturnType<typeof compareMetric>;

/**
 * Metric name → both systems, for the metrics that both have, in the order of the first.
 *
 * @param questionOf the id of the question that a query id stands for. The differences of a question's queries are drawn together, and
 * change signs together.
 */
export function compareEvaluations(
  first: Evaluation,
  second: Evaluation,
  seed: number,
  questionOf: (id: string) => string = (id) => id,
): Readonly<Record<string, ComparedMetric>> {
  const names = Object.keys(first.means).filter((name) => name in second.means);
  return Object.fromEntries(names.map((name) => [name, compareMetric(pairsOf(first, second, name), seed, questionOf)]));
}

function compareMetric(pairs: readonly Pair[], seed: number, questionOf: (id: string) => string) {
  const mean = (value: 'first' | 'second' | 'difference'): number =>
    pairs.length === 0 ? 0 : meanOf(Float64Array.from(pairs, (pair) => pair[value]));
  const questions = groupByQuestion(
    pairs.map(({ queryId }) => queryId),
    questionOf,
  );
  const sums = questionSums(
    pairs.map(({ difference }) => difference),
    questions,
  );
  return {
    queries: pairs.length,
    /** The number of questions, if a question has several queries. Interval and p are then of questions. */
    ...(sums.length < pairs.length && { questions: sums.length }),
    first: mean('first'),
    second: mean('second'),
    /** Second minus first, with the 95 % interval of the paired bootstrap; null with fewer than two questions, or if all differ equally. */
    difference: mean('difference'),
    interval: bootstrapIntervals([sums], seed, questions.sizes)[0]!,
    /** Small if chance does not explain the difference. Not corrected for several metrics or systems. */
    p: randomisationTest(sums, seed),
    ...betterAndWorse(pairs),
  };
}

/** Queries for which the second is better, worse. */
function betterAndWorse(pairs: readonly Pair[]): { better: number; worse: number } {
  const better = pairs.filter(({ difference }) => difference > 0).length;
  return { better, worse: pairs.filter(({ difference }) => difference < 0).length };
}

type Pair = ReturnType<typeof pairsOf>[number];

/** A metric of each query that both have. `difference`: second minus first. */
function pairsOf(first: Evaluation, second: Evaluation, name: string) {
  return [...first.perQuery].flatMap(([queryId, metrics]) => {
    const [before, after] = [metrics[name], second.perQuery.get(queryId)?.[name]];
    if (before === undefined || after === undefined) return [];
    // Equal values of `map` may differ in the last bits, because other ranks add up to them.
    const difference = Math.abs(after - before) < ROUNDING ? 0 : after - before;
    return [{ queryId, first: before, second: after, difference }];
  });
}

export function changedQueries(first: Evaluation, second: Evaluation, metric: string, most: number) {
  const pairs = pairsOf(first, second, metric);
  const changed = pairs.filter(({ difference }) => difference !== 0);
  return {
    metric,
    queries: pairs.length,
    ...betterAndWorse(pairs),
    /** The queries whose metric differs most, at most as many as asked for; of equal ones the first. */
    most: changed
      .sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference))
      .slice(0, most)
      .map(({ difference: _, ...pair }) => pair),
  };
}

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
