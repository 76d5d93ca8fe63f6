import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  hasMargin,
  type ScoreLimits,
  sampleNegatives,
  scoreReason,
} from '../../../training/mining/choose-negatives.ts';
import { candidate } from './mining-fixtures.ts';

const NONE: ScoreLimits = { maxScore: null, minScore: null, absoluteMargin: null, relativeMargin: null };

function reasonOf(score: number | null, limits: Partial<ScoreLimits>, lowest: number | null = 0.8): string {
  return scoreReason(candidate('n1', 'text', { score }), { ...NONE, ...limits }, lowest) ?? 'kept';
}

test('a score above the largest or below the smallest is dropped, one on the limit is not', () => {
  assert.deepEqual(
    [0.7, 0.71, 0.3, 0.29].map((score) => reasonOf(score, { maxScore: 0.7, minScore: 0.3 })),
    ['kept', 'max_score', 'kept', 'min_score'],
  );
  assert.equal(reasonOf(-3, { maxScore: -2 }), 'kept');
});

test('a candidate closer to the lowest positive than the absolute margin is dropped', () => {
  assert.deepEqual(
    [0.5, 0.625].map((score) => reasonOf(score, { absoluteMargin: 0.25 }, 0.75)),
    ['kept', 'absolute_margin'],
  );
});

test('the relative margin takes a share of the magnitude, so that it works for negative scores', () => {
  assert.deepEqual(
    [0.75, 0.77].map((score) => reasonOf(score, { relativeMargin: 0.05 })),
    ['kept', 'relative_margin'],
  );
  // p − |p| · r = −4 − 2: p · (1 − r) would be −2, above the positive.
  assert.deepEqual(
    [-6, -5].map((score) => reasonOf(score, { relativeMargin: 0.5 }, -4)),
    ['kept', 'relative_margin'],
  );
});

test('a candidate without a score passes, and margins wait for a known positive', () => {
  assert.equal(reasonOf(null, { maxScore: 0 }), 'kept');
  assert.equal(reasonOf(0.9, { absoluteMargin: 0.1, relativeMargin: 0.1 }, null), 'kept');
  assert.deepEqual(
    [{ maxScore: 1 }, { absoluteMargin: 0 }, { relativeMargin: 0 }].map((limits) => hasMargin({ ...NONE, ...limits })),
    [false, true, true],
  );
});

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
