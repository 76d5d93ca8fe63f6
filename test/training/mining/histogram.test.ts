import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { binsOf, type Counts, countValue, rankBins } from '../../../training/mining/histogram.ts';

test('every value is in one bin, whatever the values are', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true })), (values) => {
      const counts: Counts = {};
      for (const value of values) countValue(counts, value);
      const bins = binsOf(counts);
      assert.equal(
        bins.reduce((sum, { count }) => sum + count, 0),
        values.length,
      );
      assert.ok(bins.length <= 12);
    }),
  );
});

test('values are counted to a thousandth', () => {
  const counts: Counts = {};
  for (let i = 0; i < 100_000; i++) countValue(counts, 0.5 + i / 200_000);
  assert.ok(Object.keys(counts).length <= 1024);
  const bins = binsOf(counts, 5);
  assert.deepEqual(
    bins.map(({ from }) => from.toFixed(1)),
    ['0.5', '0.6', '0.7', '0.8', '0.9'],
  );
  for (const { count } of bins) assert.ok(Math.abs(count - 20_000) < 200, `${count}`);
});

test('ranks have bins that grow', () => {
  const ranks = Object.fromEntries([1, 2, 5, 6, 20, 21, 100, 101].map((rank) => [rank, 1]));
  assert.deepEqual(rankBins(ranks), [
    { from: 1, to: 1, count: 1 },
    { from: 2, to: 5, count: 2 },
    { from: 6, to: 10, count: 1 },
    { from: 11, to: 20, count: 1 },
    { from: 21, to: 50, count: 1 },
    { from: 51, to: 100, count: 1 },
    { from: 101, to: 200, count: 1 },
  ]);
  assert.deepEqual(rankBins({}), []);
});

test('every rank is in a bin that has it', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 5000 })), (ranks) => {
      const counts: Counts = {};
      for (const rank of ranks) counts[rank] = (counts[rank] ?? 0) + 1;
      for (const { from, to, count } of rankBins(counts)) {
        assert.equal(count, ranks.filter((rank) => rank >= from && rank <= to).length);
      }
    }),
  );
});
