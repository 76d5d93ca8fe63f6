import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapInterval, meanOf } from '../../../evaluation/significance.ts';
import { upperQuantile, upperTail } from '../../../src/base/normal-tail.ts';
import { calibrateTail, negativeBinomialAtMost } from '../../../training/triage/calibrate-tail.ts';
import { RecallEstimator } from '../../../training/triage/estimate-recall.ts';
import type { RelevantPlace, RelevantPlaces } from '../../../training/triage/relevant-places.ts';
import { thresholdOf, verdictOf } from '../../../training/triage/triage-report.ts';
import { seededNormal } from '../../helpers/seeded-random.ts';

function near(found: number, expected: number, tolerance: number): void {
  assert.ok(Math.abs(found - expected) <= tolerance, `${found} is not within ${tolerance} of ${expected}`);
}

function place(question: number, more: Partial<RelevantPlace>): RelevantPlace {
  return { question, ofRelevant: 1, ahead: 0, sampleAhead: 0, score: 1, ...more };
}

test('the upper tail of the normal distribution and its quantiles are those of tables', () => {
  for (const [z, p] of [
    [0, 0.5],
    [1, 0.15865525393],
    [1.959964, 0.025],
    [4, 3.167124e-5],
    [-1, 0.84134474607],
  ] as const) {
    near(upperTail(z) / p, 1, 3e-7);
    near(upperQuantile(p), z, 1e-5);
  }
});

test('the negative binomial distribution is that of its mean and shape', () => {
  // Shape 1 is geometric: P(0) = 1 / (1 + mean).
  near(negativeBinomialAtMost(0, 3, 1), 0.25, 1e-12);
  near(negativeBinomialAtMost(1, 3, 1), 0.25 + 0.25 * 0.75, 1e-12);
  // A large shape is Poisson.
  near(negativeBinomialAtMost(2, 2, 1e9), Math.exp(-2) * (1 + 2 + 2), 1e-6);
  assert.equal(negativeBinomialAtMost(-1, 2, 1), 0);
  near(negativeBinomialAtMost(10_000, 2, 1), 1, 1e-9);
});

test('the bound and the scaled counts are those computed by hand', () => {
  const places: RelevantPlaces = {
    questions: [[], [], []],
    longestCount: 30,
    places: [
      place(0, { ahead: 2 }),
      // One of a sample of a fifth stands for five.
      place(1, { ahead: 1, sampleAhead: 1 }),
      // Two relevant passages, of which one is never found.
      place(2, { ahead: 0, ofRelevant: 2 }),
      place(2, { ahead: Number.POSITIVE_INFINITY, score: Number.NEGATIVE_INFINITY, ofRelevant: 2 }),
    ],
  };
  const estimator = new RecallEstimator(places, { rest: 100, sampled: 20 });
  assert.deepEqual([...estimator.recalls('bound', 2)], [0, 0, 0.5]);
  assert.deepEqual([...estimator.recalls('bound', 3)], [1, 1, 0.5]);
  assert.deepEqual([...estimator.recalls('counts', 6)], [1, 0, 0.5]);
  assert.deepEqual([...estimator.recalls('counts', 7)], [1, 1, 0.5]);
  const whole = new RecallEstimator(places, { rest: 20, sampled: 20 });
  for (const k of [1, 2, 3, 10]) assert.deepEqual(whole.recalls('tail', k), whole.recalls('bound', k));
});

test('a question whose relevant passages are all found has a recall of 1, however many they are', () => {
  for (const count of [3, 10, 49]) {
    const places = Array.from({ length: count }, () => place(0, { ofRelevant: count }));
    const estimator = new RecallEstimator({ questions: [[]], longestCount: 30, places }, { rest: 0, sampled: 0 });
    for (const name of ['bound', 'tail'] as const) assert.deepEqual([...estimator.recalls(name, 5)], [1], `${count}`);
  }
});

test('a recall that is at the gate but for rounding passes, and one below is refused', () => {
  // 0.8 − 0.1 is 0.7000000000000001.
  const threshold = thresholdOf({ k: 5, minRecall: null, maxDrop: 0.1 }, 0.8);
  const verdict = (bound: number, estimate: number | null): string => {
    const of = (value: number): { value: number; low: number; high: number } => ({ value, low: value, high: value });
    return verdictOf({ bound: of(bound), estimate: estimate === null ? null : of(estimate) }, threshold);
  };
  assert.equal(verdict(0.7, null), 'passed');
  assert.equal(verdict(0.9, 0.7), 'passed');
  assert.equal(verdict(0.9, 0.6999), 'refused');
  assert.equal(verdict(0.6999, 0.6999), 'refused-for-certain');
});

test('an estimate is never above the bound, and rises with k', () => {
  const normal = seededNormal(5);
  const places: RelevantPlaces = {
    questions: Array.from({ length: 40 }, () => Array.from({ length: 30 }, () => normal()).sort((a, b) => b - a)),
    longestCount: 30,
    places: Array.from({ length: 40 }, (_, i) => place(i, { ahead: i % 7, sampleAhead: i % 3, score: 3 - i / 10 })),
  };
  const estimator = new RecallEstimator(places, { rest: 5000, sampled: 50 });
  let before: Float64Array = new Float64Array(40);
  for (const k of [1, 2, 5, 10, 30]) {
    const bound = estimator.recalls('bound', k);
    const tail = estimator.recalls('tail', k);
    for (let i = 0; i < 40; i++) assert.ok(tail[i]! <= bound[i]! && tail[i]! >= before[i]! - 1e-12, `@${k}, ${i}`);
    before = tail;
  }
});

test('the tail estimates recall where a sample of one in a hundred has almost no passage before the relevant ones', () => {
  const normal = seededNormal(11);
  const [questions, rest, sampled] = [300, 20_000, 200] as const;
  const samples: number[][] = [];
  const places: RelevantPlace[] = [];
  let found = 0;
  for (let question = 0; question < questions; question++) {
    // The relevant passage is about three deviations above the others.
    const score = 3.4 + 0.7 * normal();
    const scores = Array.from({ length: rest }, () => normal());
    if (scores.filter((other) => other > score).length < 10) found += 1;
    const sample = scores.slice(0, sampled).sort((a, b) => b - a);
    samples.push(sample.slice(0, 30));
    places.push(place(question, { score, sampleAhead: sample.slice(0, 30).filter((other) => other > score).length }));
  }
  const truth = found / questions;
  const estimator = new RecallEstimator({ questions: samples, places, longestCount: 30 }, { rest, sampled });
  const [bound, counts, tail] = (['bound', 'counts', 'tail'] as const).map((name) =>
    meanOf(estimator.recalls(name, 10)),
  ) as [number, number, number];
  assert.ok(truth > 0.5 && truth < 0.9, `${truth}`);
  assert.ok(bound - truth > 0.2 && counts - truth > 0.1, `${truth}, ${bound}, ${counts}`);
  near(tail, truth, 0.04);
});

test('a sample whose scores are all equal has no tail, and is only counted', () => {
  const places: RelevantPlaces = {
    questions: [Array.from({ length: 30 }, () => 0.5)],
    longestCount: 30,
    places: [place(0, { sampleAhead: 0 })],
  };
  const [value] = new RecallEstimator(places, { rest: 3000, sampled: 30 }).recalls('tail', 5);
  assert.ok(Number.isFinite(value) && value! >= 0 && value! <= 1);
});

test('the calibration finds the factor by which tails expect too much', () => {
  const random = seededNormal(3);
  const counts = Array.from({ length: 3000 }, () => {
    const expected = Math.exp(3 + 2 * random());
    // A tenth of it, sampled to one half, rounded at random.
    const mean = 0.05 * expected;
    return { expected, sampleAhead: Math.floor(mean + Math.abs(random()) * 0.6) };
  });
  const { factor, exponent, shape } = calibrateTail(counts, 0.5, 1000);
  near(factor * 1000 ** exponent, 100, 25);
  assert.ok(shape > 1, `${shape}`);
});

test('an interval has the mean, narrows with more questions, and repeats with its seed', () => {
  const values = (count: number): Float64Array => Float64Array.from({ length: count }, (_, i) => (i % 4 === 0 ? 1 : 0));
  const few = bootstrapInterval(values(100), 1)!;
  const many = bootstrapInterval(values(10_000), 1)!;
  for (const { low, high } of [few, many]) assert.ok(low < 0.25 && high > 0.25);
  // The standard error of a share of a quarter among 100 is 0.0433.
  near(few.high - few.low, 2 * 1.96 * 0.0433, 0.02);
  near((few.high - few.low) / (many.high - many.low), 10, 1);
  assert.deepEqual(bootstrapInterval(values(100), 1), few);
  assert.notDeepEqual(bootstrapInterval(values(100), 2), few);
  assert.equal(bootstrapInterval(Float64Array.of(1, 1), 0), null);
});
