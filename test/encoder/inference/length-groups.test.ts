import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { groupByLength, MAX_GROUPED_TOKENS, packByLength } from '../../../src/encoder/inference/length-groups.ts';

test('every text with tokens is in exactly one batch, and no batch of several texts exceeds the token budget', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 600 }), { maxLength: 200 }),
      fc.integer({ min: 1, max: 4000 }),
      (lengths, budget) => {
        const batches = packByLength(lengths, budget);
        const seen = batches.flatMap(({ indexes }) => indexes).sort((a, b) => a - b);
        assert.deepEqual(
          seen,
          [...lengths.keys()].filter((index) => lengths[index]! > 0),
        );
        for (const { indexes, length, rows } of batches) {
          assert.ok(indexes.every((index) => lengths[index]! <= length));
          assert.ok(indexes.length <= rows);
          assert.ok(rows === 1 || rows * length <= budget);
          assert.equal(length % 8, 0);
        }
        const padded = batches.map(({ length }) => length);
        assert.deepEqual(
          padded,
          [...padded].sort((a, b) => b - a),
          'the longest first',
        );
      },
    ),
  );
});

test('the batches of one padded length have few numbers of rows', () => {
  const rows = new Set<number>();
  for (let texts = 1; texts <= 128; texts++) {
    for (const batch of packByLength(Array<number>(texts).fill(128), 16_384)) rows.add(batch.rows);
  }
  assert.deepEqual([...rows], [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128]);
});

test('texts of equal length form groups of at most 128 tokens; longer texts and texts of at most one token run alone', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 200 }), (lengths) => {
      const groups = groupByLength(lengths);
      assert.deepEqual(
        groups.flat().sort((a, b) => a - b),
        [...lengths.keys()],
      );
      for (const group of groups) {
        const length = lengths[group[0]!]!;
        assert.ok(group.every((place) => lengths[place] === length));
        assert.ok(group.length === 1 || (length > 1 && length <= MAX_GROUPED_TOKENS && group.length * length <= 128));
      }
      for (const length of new Set(lengths.filter((each) => each > 1 && each <= MAX_GROUPED_TOKENS))) {
        const full = groups.filter(([place]) => lengths[place!] === length && length * 2 <= 128);
        assert.ok(
          full.filter((group) => (group.length + 1) * length <= 128).length <= 1,
          'at most one group of a length is not full',
        );
      }
    }),
  );
});
