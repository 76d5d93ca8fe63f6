import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import {
  allGoldAt,
  averagePrecision,
  hitAt,
  ndcgAt,
  precisionAt,
  recallAt,
  reciprocalRank,
  rPrecision,
} from '../../evaluation/ranking-metrics.ts';

// Ranks:          1    2    3    4    5
const ranking = ['n1', 'b', 'n2', 'a', 'n3'];
/** Ideal order: a (3), b (1), c (1, never found). n1 has been judged and is not relevant. */
const judgements = new Map([
  ['a', 3],
  ['b', 1],
  ['c', 1],
  ['n1', 0],
]);

const METRICS = [recallAt, hitAt, ndcgAt, reciprocalRank, allGoldAt, rPrecision, averagePrecision];

function close(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 1e-12, `${actual}, expected ${expected}`);
}

test('recall is the share of all relevant passages', () => {
  assert.deepEqual(
    [1, 2, 4, 100].map((k) => recallAt(ranking, judgements, k)),
    [0, 1 / 3, 2 / 3, 2 / 3],
  );
});

test('precision is the share of relevant ranks, of which a short list has as many', () => {
  assert.deepEqual(
    [1, 2, 4, 100].map((k) => precisionAt(ranking, judgements, k)),
    [0, 1 / 2, 2 / 4, 2 / 100],
  );
  assert.equal(precisionAt(['a', 'a'], judgements, 2), 1 / 2, 'a repeated passage counts once');
});

test('hit is 1 if one of the first k passages is relevant', () => {
  assert.deepEqual(
    [1, 2, 100].map((k) => hitAt(ranking, judgements, k)),
    [0, 1, 1],
  );
});

test('the reciprocal rank is that of the first relevant passage', () => {
  assert.equal(reciprocalRank(ranking, judgements), 1 / 2);
  assert.equal(reciprocalRank(ranking, judgements, 1), 0);
  assert.equal(reciprocalRank(['x'], judgements), 0);
});

test('nDCG uses the grade as gain and log2 of rank + 1 as discount', () => {
  const ideal = 3 / Math.log2(2) + 1 / Math.log2(3) + 1 / Math.log2(4);
  close(ndcgAt(ranking, judgements, 5), (1 / Math.log2(3) + 3 / Math.log2(5)) / ideal);
  close(ndcgAt(ranking, judgements, 2), 1 / Math.log2(3) / (3 / Math.log2(2) + 1 / Math.log2(3)));
  assert.equal(ndcgAt(['a', 'b', 'c'], judgements, 10), 1);
});

test('average precision divides by all relevant passages, also by those that are not found', () => {
  close(averagePrecision(ranking, judgements), (1 / 2 + 2 / 4) / 3);
  close(averagePrecision(ranking, judgements, 3), 1 / 2 / 3);
  assert.equal(averagePrecision(['c', 'b', 'a'], judgements), 1);
});

test('R-precision is the precision after as many passages as are relevant', () => {
  assert.equal(rPrecision(ranking, judgements), 1 / 3);
  assert.equal(rPrecision(['a', 'b', 'c', 'x'], judgements), 1);
});

test('all gold is reached with the last relevant passage', () => {
  const found = ['a', 'x', 'b', 'c'];
  assert.deepEqual(
    [1, 3, 4, 9].map((k) => allGoldAt(found, judgements, k)),
    [0, 0, 1, 1],
  );
});

test('all metrics are 0 without a relevant passage or without results', () => {
  const none = new Map([
    ['a', 0],
    ['b', -1],
  ]);
  for (const metric of METRICS) {
    assert.equal(metric(['a', 'b'], none, 10), 0);
    assert.equal(metric([], judgements, 10), 0);
  }
});

test('a passage that is ranked several times counts once', () => {
  assert.equal(recallAt(['a', 'a', 'a'], judgements, 3), 1 / 3);
  assert.equal(ndcgAt(['a', 'a', 'b', 'c'], judgements, 4), ndcgAt(['a', 'x', 'b', 'c'], judgements, 4));
});

test('every metric is between 0 and 1, and recall and hit grow with k', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const grades = fc.dictionary(id, fc.integer({ min: -1, max: 4 })).map((dict) => new Map(Object.entries(dict)));
  fc.assert(
    fc.property(fc.array(id), grades, fc.integer({ min: 1, max: 10 }), (ids, judged, k) => {
      for (const metric of METRICS) {
        const value = metric(ids, judged, k);
        assert.ok(value >= 0 && value <= 1 + 1e-12, String(value));
      }
      assert.ok(recallAt(ids, judged, k) <= recallAt(ids, judged, k + 1));
      assert.ok(hitAt(ids, judged, k) <= hitAt(ids, judged, k + 1));
    }),
  );
});
