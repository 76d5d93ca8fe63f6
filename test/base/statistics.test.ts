import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';

test('percentiles are interpolated linearly between the two nearest samples', () => {
  const samples = sortedSamples([4, 1, 3, 2]);
  assert.equal(percentile(samples, 0), 1);
  assert.equal(median(samples), 2.5);
  assert.equal(percentile(samples, 95), 3.85);
  assert.equal(percentile(samples, 100), 4);
  assert.equal(median(sortedSamples([7])), 7);
});

test('numbers are sorted by value, and the given list is unchanged', () => {
  const given = [10, 9, -1, 100];
  assert.deepEqual([...sortedSamples(given)], [-1, 9, 10, 100]);
  assert.deepEqual(given, [10, 9, -1, 100]);
});

test('a percentile lies between the extremes and rises with its rank', () => {
  fc.assert(
    fc.property(fc.array(fc.double({ noNaN: true, min: -1e9, max: 1e9 }), { minLength: 1 }), (drawn) => {
      // Turns −0 into 0, which assert distinguishes.
      const values = drawn.map((value) => value + 0);
      const samples = sortedSamples(values);
      const ranks = [0, 5, 50, 95, 100].map((percent) => percentile(samples, percent));
      assert.equal(ranks[0], Math.min(...values));
      assert.equal(ranks[4], Math.max(...values));
      for (let i = 1; i < ranks.length; i++) assert.ok(ranks[i]! >= ranks[i - 1]!);
    }),
  );
});

test('an empty list, NaN and an invalid percentage are refused', () => {
  assert.throws(() => sortedSamples([]), RangeError);
  assert.throws(() => sortedSamples([1, Number.NaN]), RangeError);
  for (const percent of [-1, 101, Number.NaN]) assert.throws(() => percentile(sortedSamples([1]), percent), RangeError);
});
