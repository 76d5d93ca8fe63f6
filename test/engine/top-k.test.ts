import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TopK } from '../../src/engine/top-k.ts';

interface Scored {
  readonly row: number;
  readonly score: number;
}

function topK(k: number, offers: readonly Scored[]): Scored[] {
  const heap = new TopK(k);
  for (const { row, score } of offers) heap.offer(row, score);
  const { rows, scores } = heap.sorted();
  return rows.map((row, i) => ({ row, score: scores[i]! }));
}

function bySorting(k: number, offers: readonly Scored[]): Scored[] {
  return [...offers].sort((a, b) => b.score - a.score || a.row - b.row).slice(0, k);
}

/** Few distinct scores, so that most are tied. */
const tiedScores = fc.constantFrom(-2, -1, 0, 1, 2, 1e300, -1e300);
const offers = fc
  .array(fc.oneof({ weight: 3, arbitrary: tiedScores }, { weight: 1, arbitrary: fc.double({ noNaN: true }) }), {
    maxLength: 200,
  })
  .map((scores) => scores.map((score, row) => ({ row, score: score === 0 ? 0 : score })));

test('the k best are the first k by score, ties by the lower row', () => {
  fc.assert(
    fc.property(offers, fc.integer({ min: 1, max: 210 }), (all, k) => {
      assert.deepEqual(topK(k, all), bySorting(k, all));
    }),
    { numRuns: 500 },
  );
});

test('the order of the rows does not matter', () => {
  fc.assert(
    fc.property(
      offers.chain((all) =>
        fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length })),
      ),
      fc.integer({ min: 1, max: 50 }),
      ([all, shuffled], k) => {
        assert.deepEqual(topK(k, shuffled), topK(k, all));
      },
    ),
  );
});

test('of equal scores the lower rows are kept, even if they are offered last', () => {
  const all = [9, 8, 7, 1, 0].map((row) => ({ row, score: 1 }));
  assert.deepEqual(
    topK(2, all).map(({ row }) => row),
    [0, 1],
  );
});

test('zeros of either sign are equal', () => {
  const all = [
    { row: 3, score: 0 },
    { row: 1, score: -0 },
    { row: 2, score: 0 },
  ];
  assert.deepEqual(
    topK(2, all).map(({ row }) => row),
    [1, 2],
  );
});

test('with k above the number of rows all rows are returned, and without rows none', () => {
  assert.deepEqual(
    topK(10, [
      { row: 0, score: -5 },
      { row: 1, score: 5 },
    ]).map(({ row }) => row),
    [1, 0],
  );
  assert.deepEqual(topK(10, []), []);
});

test('row numbers beyond 32 bits stay exact', () => {
  const all = [2 ** 40 + 1, 2 ** 40, 5].map((row) => ({ row, score: 0 }));
  assert.deepEqual(
    topK(3, all).map(({ row }) => row),
    [5, 2 ** 40, 2 ** 40 + 1],
  );
});
