import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agreement } from '../../../bench/flat/agreement.ts';

const list = { rows: [7, 3, 9], scores: [0.9, 0.8, 0.7] };

test('the same lists agree', () => {
  assert.equal(agreement(list, list, 1, 3), 1);
});

test('nearly tied rows may be swapped, also across the end of the list', () => {
  const tied = { rows: [7, 3, 9], scores: [0.9, 0.8, 0.8] };
  assert.equal(agreement(tied, { rows: [7, 9, 3], scores: [0.9, 0.800_001, 0.8] }, 1, 3), 1);
  assert.equal(agreement(tied, { rows: [7, 4, 3], scores: [0.9, 0.8, 0.8] }, 1, 3), 1);
});

test('a list with another row, another score or a missing row does not agree', () => {
  assert.equal(agreement(list, { rows: [7, 4, 9], scores: [0.9, 0.8, 0.7] }, 1, 3), 0);
  assert.equal(agreement(list, { rows: [7, 3, 9], scores: [0.9, 0.8, 0.71] }, 1, 3), 0);
  assert.equal(agreement(list, { rows: [7, 3], scores: [0.9, 0.8] }, 1, 3), 0);
  assert.equal(agreement(list, { rows: [7, 3, 9], scores: [0.9, Number.NaN, 0.7] }, 1, 3), 0);
});

test('agreement is the share of the queries whose lists agree', () => {
  const two = { rows: [1, 2], scores: [0.5, 0.5] };
  assert.equal(agreement(two, { rows: [1, 3], scores: [0.5, 0.6] }, 2, 1), 0.5);
});
