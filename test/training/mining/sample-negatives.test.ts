import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sampleNegatives } from '../../../training/mining/sample-negatives.ts';
import { candidate } from './mining-fixtures.ts';

const CANDIDATES = Array.from({ length: 40 }, (_, i) => candidate(`n${i}`, `text ${i}`, { rank: i + 1, row: i }));

function ids(seed: number, key: string, count = 5, candidates = CANDIDATES): string[] {
  return sampleNegatives(candidates, { strategy: 'random', seed, count }, key).map(({ id }) => id);
}

test('top takes the first ones', () => {
  const found = sampleNegatives(CANDIDATES, { strategy: 'top', seed: 1, count: 3 }, 'key');
  assert.deepEqual(found, CANDIDATES.slice(0, 3));
});

test('a random choice depends on seed and query, and stays in the order of the list', () => {
  assert.deepEqual(ids(1, 'a'), ids(1, 'a'));
  assert.notDeepEqual(ids(1, 'a'), ids(2, 'a'));
  assert.notDeepEqual(ids(1, 'a'), ids(1, 'b'));
  const ranks = ids(1, 'a').map((id) => Number(id.slice(1)));
  assert.deepEqual(
    ranks,
    ranks.toSorted((a, b) => a - b),
  );
});

test('a candidate that another rule drops changes the choice by itself alone', () => {
  const chosen = ids(3, 'a');
  const without = ids(
    3,
    'a',
    5,
    CANDIDATES.filter(({ id }) => id !== chosen[2]),
  );
  assert.equal(without.length, 5);
  for (const id of chosen) assert.equal(without.includes(id), id !== chosen[2]);
});

test('a choice has no repetition and as many as wanted, or all', () => {
  fc.assert(
    fc.property(fc.nat({ max: 50 }), fc.nat(), fc.string(), (count, seed, key) => {
      const found = ids(seed, key, count);
      assert.equal(found.length, Math.min(count, CANDIDATES.length));
      assert.equal(new Set(found).size, found.length);
    }),
  );
});
