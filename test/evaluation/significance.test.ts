import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedQueries, compareEvaluations, metricIntervals } from '../../evaluation/compare-evaluations.ts';
import { type Evaluation, type Metrics, meansOf } from '../../evaluation/evaluate-run.ts';
import { bootstrapInterval, bootstrapIntervals, randomisationTest } from '../../evaluation/significance.ts';
import { seededRandom } from '../helpers/seeded-random.ts';

function evaluationOf(values: readonly (readonly [string, Metrics])[]): Evaluation {
  const perQuery = new Map(values);
  const queries = perQuery.size;
  return {
    queries,
    judged: queries,
    unjudged: 0,
    titleJudged: 0,
    answerable: 0,
    means: meansOf(perQuery.values()),
    perQuery,
  };
}

test('the p-value of few questions counts all assignments of signs', () => {
  // 2 of 2^5 assignments are as far from 0: all plus, all minus.
  assert.equal(randomisationTest(Float64Array.of(1, 1, 1, 1, 1), 1), 2 / 32);
  // Questions without a difference do not count.
  assert.equal(randomisationTest(Float64Array.of(0, 1, 1, 0, 1, 1, 1), 1), 2 / 32);
  assert.equal(randomisationTest(Float64Array.of(-0.5, -0.25), 1), 2 / 4);
  assert.equal(randomisationTest(Float64Array.of(1, -1), 1), 1);
  assert.equal(randomisationTest(Float64Array.of(0, 0), 1), 1);
  assert.equal(randomisationTest(new Float64Array(0), 1), 1);
});

test('equal sums in another order of addition count as equal', () => {
  // 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit.
  assert.equal(randomisationTest(Float64Array.of(0.1, 0.2, 0.3, -0.6), 1), 1);
});

test('the p-value of many questions comes from random assignments, which repeat with their seed', () => {
  const random = seededRandom(5);
  const noise = Float64Array.from({ length: 400 }, () => random() - 0.5);
  const p = randomisationTest(noise, 1);
  assert.ok(p > 0.01 && p <= 1, `${p}`);
  assert.equal(randomisationTest(noise, 1), p);
  assert.notEqual(randomisationTest(noise, 2), p);
  const shifted = noise.map((value) => value + 0.2);
  assert.equal(randomisationTest(shifted, 1), 2 / 10_000);
  // Which of the two systems is first does not matter, but for the draws.
  const weak = noise.map((value) => value + 0.02);
  const [one, other] = [
    randomisationTest(weak, 1),
    randomisationTest(
      weak.map((value) => -value),
      1,
    ),
  ];
  assert.ok(Math.abs(one - other) < 0.03, `${one} ${other}`);
});

test('metrics of the same questions have the intervals that each has alone', () => {
  const random = seededRandom(9);
  const columns = [0, 1, 2].map(() => Float64Array.from({ length: 60 }, () => random()));
  assert.deepEqual(
    bootstrapIntervals(columns, 4),
    columns.map((values) => bootstrapInterval(values, 4)),
  );
  assert.deepEqual(bootstrapIntervals([], 4), []);
});

test('a metric that only some questions have gets its interval from these', () => {
  const all = Array.from({ length: 40 }, (_, i): Metrics => ({ a: i % 2, ...(i < 20 ? { b: i % 3 } : {}) }));
  const byId = (queries: readonly Metrics[]) => new Map(queries.map((metrics, i) => [`q${i}`, metrics]));
  const intervals = metricIntervals(byId([...all, { c: 1 }]), 3);
  assert.deepEqual(Object.keys(intervals), ['a', 'b', 'c']);
  assert.equal(intervals.c, null, 'of one question');
  assert.deepEqual(
    intervals.b,
    bootstrapInterval(
      Float64Array.from({ length: 20 }, (_, i) => i % 3),
      3,
    ),
  );
  assert.deepEqual(metricIntervals(new Map(), 3), {});
});

/** Each query several times, as the rollouts of an agent: `a`, `a#2`, … */
function copied(evaluation: Evaluation, copies: (id: string) => number): Evaluation {
  return evaluationOf(
    [...evaluation.perQuery].flatMap(([id, metrics]) =>
      Array.from({ length: copies(id) }, (_, i) => [i === 0 ? id : `${id}#${i + 1}`, metrics] as const),
    ),
  );
}

const baseId = (id: string): string => id.split('#')[0]!;

test('copies of all searches of a question change neither interval nor p-value', () => {
  const random = seededRandom(12);
  const make = () => evaluationOf(Array.from({ length: 8 }, (_, i) => [`q${i}`, { m: random(), hit: i % 2 }] as const));
  const [first, second] = [make(), make()];
  const [first8, second8] = [copied(first, () => 8), copied(second, () => 8)];
  const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-12, `${a} ${b}`);
  const once = metricIntervals(first.perQuery, 3);
  const often = metricIntervals(first8.perQuery, 3, baseId);
  for (const name of ['m', 'hit']) {
    near(once[name]!.low, often[name]!.low);
    near(once[name]!.high, often[name]!.high);
  }
  const compared = compareEvaluations(first, second, 1).m!;
  const compared8 = compareEvaluations(first8, second8, 1, baseId).m!;
  assert.equal(compared8.p, compared.p);
  near(compared8.interval!.low, compared.interval!.low);
  near(compared8.difference, compared.difference);
  assert.deepEqual([compared.queries, compared.questions], [8, undefined]);
  assert.deepEqual([compared8.queries, compared8.questions], [64, 8]);
  // As if the copies were other questions, chance would explain less.
  assert.ok(compareEvaluations(first8, second8, 1).m!.p < compared.p);
});

test('where questions have unequal numbers of searches, the mean is that over searches, and each question has one sign', () => {
  const zero = evaluationOf(['a', 'b', 'c'].map((id) => [id, { m: 0 }] as const));
  const one = evaluationOf(['a', 'b', 'c'].map((id) => [id, { m: 1 }] as const));
  const copies = (id: string): number => ({ a: 3, b: 2, c: 1 })[id]!;
  const mixed = evaluationOf([...one.perQuery].map(([id]) => [id, { m: id === 'a' ? 1 : 0 }] as const));
  const { difference, p } = compareEvaluations(copied(zero, copies), copied(one, copies), 1, baseId).m!;
  assert.deepEqual([difference, p], [1, 2 / 8]);
  const part = compareEvaluations(copied(zero, copies), copied(mixed, copies), 1, baseId).m!;
  assert.deepEqual([part.difference, part.p], [3 / 6, 1]);
  // Three equal draws of a, or of the others, are the ends.
  assert.deepEqual(part.interval, { low: 0, high: 1 });
});

test('differences of a question that cancel, and values that are equal but for rounding, are no differences', () => {
  const values = [1 / 3, 1 / 5, 2 / 3, 1 / 7, 0.1, 0.7];
  const rollouts = (shift: number) =>
    evaluationOf(
      Array.from({ length: 120 }, (_, i) => {
        const [question, rollout] = [Math.floor(i / 4), i % 4];
        return [
          `q${question}#${rollout}`,
          { m: values[(question + ((rollout + shift) % 4)) % values.length]! },
        ] as const;
      }),
    );
  const moved = compareEvaluations(rollouts(0), rollouts(1), 1, baseId).m!;
  assert.deepEqual([moved.questions, moved.p, moved.interval], [30, 1, null]);
  assert.ok(moved.better > 0 && moved.worse > 0);
  // MAP of three relevant passages: at ranks 1 and 4, and at 2, 3 and 9.
  const first = evaluationOf([['a', { map: (1 / 1 + 2 / 4) / 3 }]]);
  const second = evaluationOf([['a', { map: (1 / 2 + 2 / 3 + 3 / 9) / 3 }]]);
  assert.notEqual(first.means.map, second.means.map);
  const { better, worse, difference } = compareEvaluations(first, second, 1).map!;
  assert.deepEqual([better, worse, difference], [0, 0, 0]);
  const { most, ...counts } = changedQueries(first, second, 'map', 5);
  assert.deepEqual([counts.better, counts.worse, most], [0, 0, []]);
});

test('equal values have no interval: draws of them say nothing about other questions', () => {
  const same = evaluationOf(['a', 'b', 'c'].map((id) => [id, { full: 1, third: 0.1 + 0.2 }] as const));
  assert.deepEqual(metricIntervals(same.perQuery, 1), { full: null, third: null });
  const lower = evaluationOf(['a', 'b', 'c'].map((id) => [id, { full: 0.5 }] as const));
  const { interval, difference, p } = compareEvaluations(same, lower, 1).full!;
  assert.deepEqual([interval, difference, p], [null, -0.5, 2 / 8]);
  assert.equal(bootstrapInterval(Float64Array.of(1), 1), null);
});

test('two systems are compared over the questions that both have the metric of', () => {
  const first = evaluationOf([
    ['a', { recall: 0 }],
    ['b', { recall: 1, only: 1 }],
    ['c', { recall: 0.5 }],
    ['d', { recall: 1 }],
  ]);
  const second = evaluationOf([
    ['d', { recall: 0 }],
    ['a', { recall: 1 }],
    ['b', { recall: 1 }],
    ['e', { recall: 1, other: 1 }],
  ]);
  const compared = compareEvaluations(first, second, 1);
  assert.deepEqual(Object.keys(compared), ['recall']);
  const { interval, ...rest } = compared.recall!;
  assert.deepEqual(rest, { queries: 3, first: 2 / 3, second: 2 / 3, difference: 0, p: 1, better: 1, worse: 1 });
  assert.ok(interval !== null && interval.low < 0 && interval.high > 0);
  assert.deepEqual(changedQueries(first, second, 'recall', 1), {
    metric: 'recall',
    queries: 3,
    better: 1,
    worse: 1,
    most: [{ queryId: 'a', first: 0, second: 1 }],
  });
});

test('systems without a common question have no difference instead of NaN', () => {
  const compared = compareEvaluations(evaluationOf([['a', { m: 1 }]]), evaluationOf([['b', { m: 0 }]]), 1);
  assert.deepEqual(compared.m, {
    queries: 0,
    first: 0,
    second: 0,
    difference: 0,
    interval: null,
    p: 1,
    better: 0,
    worse: 0,
  });
});
