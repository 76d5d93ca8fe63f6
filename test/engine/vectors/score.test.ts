import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { METRICS, type Metric } from '../../../src/engine/metric.ts';
import { scoreFunction } from '../../../src/engine/vectors/score.ts';

function score(metric: Metric, query: readonly number[], row: readonly number[]): number {
  return scoreFunction(metric, query.length)(Float32Array.from(query), 0, Float32Array.from(row), 0);
}

const FLT_MAX = 3.4028234663852886e38;
const TINY = 2 ** -149;
const float32 = fc.float({ noNaN: true, noDefaultInfinity: true });
const pairs = fc
  .integer({ min: 1, max: 40 })
  .chain((length) =>
    fc.tuple(
      fc.array(float32, { minLength: length, maxLength: length }),
      fc.array(float32, { minLength: length, maxLength: length }),
    ),
  );

test('an inner product is summed in float64 in index order', () => {
  // In float64, 2^60 + 1 is 2^60: only this order of summation gives these values.
  assert.equal(score('inner-product', [1, 1, 1], [2 ** 60, 1, -(2 ** 60)]), 0);
  assert.equal(score('inner-product', [1, 1, 1], [2 ** 60, -(2 ** 60), 1]), 1);
  // Four running sums, as a vectorised loop has them, would give 1.
  assert.equal(score('inner-product', [1, 1, 1, 1, 1], [2 ** 60, 1, 0, 0, -(2 ** 60)]), 0);
  // Float32 sums would give 0 here.
  assert.equal(score('inner-product', [1, 1, 1], [2 ** 30, 1, -(2 ** 30)]), 1);
});

test('products are not rounded to float32', () => {
  const x = Math.fround(1 + 2 ** -23);
  assert.equal(score('inner-product', [x], [x]), 1 + 2 ** -22 + 2 ** -46);
});

test('L2 is the negated sum of squared differences, in float64 and index order', () => {
  assert.equal(score('l2', [1, 2, 3], [4, 6, 3]), -25);
  assert.equal(score('l2', [0, 0, 0], [2 ** 30, 1, 0]), -(2 ** 60));
  assert.equal(score('l2', [0, 0, 0], [1, 2 ** 30, 0]), -(2 ** 60));
  assert.equal(score('l2', [2 ** 24], [Math.fround(0.5)]), -((2 ** 24 - 0.5) ** 2), 'the difference is a float64');
});

test('L2 of identical vectors is 0, never −0, and no score is positive', () => {
  fc.assert(
    fc.property(pairs, ([a, b]) => {
      assert.ok(Object.is(score('l2', a, a), 0));
      const distance = score('l2', a, b);
      assert.ok(distance <= 0 && !Object.is(distance, -0));
    }),
  );
});

test('L2 distinguishes near-duplicates for which norms and a dot product cancel', () => {
  const big = 2 ** 20;
  assert.equal(score('l2', [big, 0], [big, 2 ** -20]), -(2 ** -40));
});

test('cosine is the dot product divided by one norm, then the other', () => {
  assert.equal(score('cosine', [3, 4], [4, 3]), 24 / 5 / 5);
  assert.equal(score('cosine', [3, 4], [30, 40]), 1);
  const [q, x] = [
    [0.1, 0.7, -0.3],
    [0.5, 0.2, 0.9],
  ] as const;
  const q32 = q.map(Math.fround);
  const x32 = x.map(Math.fround);
  const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, v, j) => sum + v * b[j]!, 0);
  assert.equal(score('cosine', q, x), dot(q32, x32) / Math.sqrt(dot(q32, q32)) / Math.sqrt(dot(x32, x32)));
});

test('cosine is 0 if a norm is 0', () => {
  assert.ok(Object.is(score('cosine', [0, 0], [1, 2]), 0));
  assert.ok(Object.is(score('cosine', [1, 2], [0, -0]), 0));
  assert.ok(Object.is(score('cosine', [0, 0], [0, 0]), 0));
});

test('cosine of the smallest and of the largest vectors neither underflows nor overflows', () => {
  assert.equal(score('cosine', [TINY, 0], [TINY, 0]), 1);
  assert.equal(score('cosine', [FLT_MAX, FLT_MAX], [-FLT_MAX, -FLT_MAX]).toFixed(12), '-1.000000000000');
  assert.equal(score('cosine', [TINY], [FLT_MAX]), 1);
});

test('scores of finite vectors are finite and never −0, for every metric', () => {
  for (const metric of METRICS) {
    fc.assert(
      fc.property(pairs, ([a, b]) => {
        const value = score(metric, a, b);
        assert.ok(Number.isFinite(value) && !Object.is(value, -0), `${metric}: ${value}`);
      }),
    );
    for (const x of [TINY, -TINY, FLT_MAX, -FLT_MAX, 0, -0]) {
      for (const y of [TINY, -TINY, FLT_MAX, -FLT_MAX, 0, -0]) {
        const value = score(metric, [x, x], [y, y]);
        assert.ok(Number.isFinite(value) && !Object.is(value, -0), `${metric} of ${x} and ${y}: ${value}`);
      }
    }
  }
});

test('vectors are read from their start positions', () => {
  const queries = Float32Array.of(9, 9, 1, 2);
  const rows = Float32Array.of(9, 3, 4, 9);
  assert.equal(scoreFunction('inner-product', 2)(queries, 2, rows, 1), 11);
  assert.equal(scoreFunction('l2', 2)(queries, 2, rows, 1), -8);
  assert.equal(scoreFunction('cosine', 2)(queries, 2, rows, 1), 11 / Math.sqrt(5) / 5);
});

test('an unknown metric is refused', () => {
  assert.throws(() => scoreFunction('manhattan' as Metric, 2), /unknown metric: manhattan/);
});
