import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tokenBatch } from '../../../src/encoder/inference/token-batch.ts';

test('rows are padded with zeros that do not count as tokens, and token types are kept', () => {
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
  assert.equal(tokenBatch([{ ids: [1], cut: 'nothing' }], 1).types, undefined);
  const taller = tokenBatch([{ ids: [1, 2], cut: 'nothing' }], 2, 3);
  assert.deepEqual(
    [[...taller.ids], [...taller.tokens]],
    [
      [1, 2, 0, 0, 0, 0],
      [2, 1, 1],
    ],
    'a row without a text has one token',
  );
});
