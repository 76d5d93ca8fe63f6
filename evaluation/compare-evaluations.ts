import { bootstrapIntervals, type Interval, meanOf, ROUNDING } from './bootstrap.ts';
import type { Evaluation } from './evaluate-run.ts';
import { groupByQuestion, questionSums } from './question-sums.ts';
import { randomisationTest } from './randomisation-test.ts';

/** A metric of two systems, over the queries that both have it for. */
export interface ComparedMetric {
  readonly queries: number;
  /** Questions of these queries, where a question has several. Interval and p are then those of questions. */
  readonly questions?: number;
  /** Means over these queries. */
  readonly first: number;
  readonly second: number;
  /** Second minus first, with the 95 % interval of the paired bootstrap; null with fewer than two questions, or if all differ equally. */
  readonly difference: number;
  readonly interval: Interval | null;
  /** Of `randomisationTest`, between 0 and 1: small if chance does not explain the difference. Not corrected for several metrics or systems. */
  readonly p: number;
  /** Queries for which the second is better, worse. */
  readonly better: number;
  readonly worse: number;
}

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

function compareMetric(pairs: readonly Pair[], seed: number, questionOf: (id: string) => string): ComparedMetric {
  const before = Float64Array.from(pairs, ({ values }) => values[0]);
  const after = Float64Array.from(pairs, ({ values }) => values[1]);
  const differences = Float64Array.from(pairs, differenceOf);
  const questions = groupByQuestion(
    pairs.map(({ queryId }) => queryId),
    questionOf,
  );
  const sums = questionSums(differences, questions);
  return {
    queries: pairs.length,
    ...(sums.length === pairs.length ? {} : { questions: sums.length }),
    first: pairs.length === 0 ? 0 : meanOf(before),
    second: pairs.length === 0 ? 0 : meanOf(after),
    difference: pairs.length === 0 ? 0 : meanOf(differences),
    interval: bootstrapIntervals([sums], seed, questions.sizes)[0]!,
    p: randomisationTest(sums, seed),
    better: differences.filter((value) => value > 0).length,
    worse: differences.filter((value) => value < 0).length,
  };
}

/** Second minus first. Equal values of `map` may differ in the last bits, because other ranks add up to them: they have no difference. */
function differenceOf({ values: [before, after] }: Pair): number {
  const difference = after - before;
  return Math.abs(difference) < ROUNDING ? 0 : difference;
}

interface Pair {
  readonly queryId: string;
  /** Of the first system and the second. */
  readonly values: readonly [number, number];
}

function pairsOf(first: Evaluation, second: Evaluation, name: string): Pair[] {
  return [...first.perQuery].flatMap(([queryId, metrics]): Pair[] => {
    const before = metrics[name];
    const after = second.perQuery.get(queryId)?.[name];
    return before === undefined || after === undefined ? [] : [{ queryId, values: [before, after] }];
  });
}

export interface ChangedQueries {
  readonly metric: string;
  readonly queries: number;
  readonly better: number;
  readonly worse: number;
  /** Those whose metric differs most, at most as many as asked for; of equal ones the first. */
  readonly most: readonly { readonly queryId: string; readonly first: number; readonly second: number }[];
}

/** The queries for which a metric differs between two systems. */
export function changedQueries(first: Evaluation, second: Evaluation, metric: string, most: number): ChangedQueries {
  const pairs = pairsOf(first, second, metric);
  const changed = pairs.filter((pair) => differenceOf(pair) !== 0);
  return {
    metric,
    queries: pairs.length,
    better: changed.filter((pair) => differenceOf(pair) > 0).length,
    worse: changed.filter((pair) => differenceOf(pair) < 0).length,
    most: changed
      .sort((a, b) => Math.abs(differenceOf(b)) - Math.abs(differenceOf(a)))
      .slice(0, most)
      .map(({ queryId, values: [before, after] }) => ({ queryId, first: before, second: after })),
  };
}
