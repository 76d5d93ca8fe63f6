import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { groupByLength, MAX_GROUPED_TOKENS, packByLength, tokenBatch } from '../../src/embedding/token-batch.ts';

test('every text with tokens is in one batch, and no batch of several exceeds the budget', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 600 }), { maxLength: 200 }),
      fc.integer({ min: 1, max: 4000 }),
      (lengths, budget) => {
        const batches = packByLength(lengths, budget);
        const seen = batches.flatMap(({ places }) => places).sort((a, b) => a - b);
        assert.deepEqual(
          seen,
          [...lengths.keys()].filter((place) => lengths[place]! > 0),
        );
        for (const { places, length } of batches) {
          assert.ok(places.every((place) => lengths[place]! <= length));
          assert.ok(places.length === 1 || places.length * length <= budget);
          assert.equal(length % 32, 0);
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

test('rows are padded with zeros that are no tokens, and types come along', () => {
  const batch = tokenBatch(
    [
      { ids: [5, 6, 7], types: [0, 0, 1], cut: 'nothing' },
      { ids: [8], cut: 'tail' },
    ],
    4,
  );
  assert.deepEqual([...batch.ids], [5, 6, 7, 0, 8, 0, 0, 0]);
  assert.deepEqual([...batch.types!], [0, 0, 1, 0, 0, 0, 0, 0]);
  assert.deepEqual([...batch.tokens], [3, 1]);
  assert.equal(tokenBatch([{ ids: [1], cut: 'nothing' }], 1).types, null);
});

test('texts of equal length are in groups of at most 128 tokens, longer ones and those of one token or none alone', () => {
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
        assert.ok(full.filter((group) => (group.length + 1) * length <= 128).length <= 1, 'one may have room');
      }
    }),
  );
});
