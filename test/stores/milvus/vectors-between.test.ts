import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LARGEST_NORM } from '../../../src/stores/milvus/score-bound.ts';
import { vectorsBetween } from '../../../src/stores/publish/vectors-between.ts';
import { upperNorm } from '../../../src/stores/published/upper-norm.ts';

test('the questions of a comparison are as long as the rows at most, so that Milvus can score them', () => {
  const longest = LARGEST_NORM * 0.999;
  const rows = [Float32Array.of(longest, 0), Float32Array.of(longest, 0), Float32Array.of(0, longest)];
  const questions = vectorsBetween(rows);
  assert.deepEqual([...questions.subarray(0, 2)], [...rows[0]!]);
  assert.equal(questions.length, 6);
  for (let at = 0; at < 6; at += 2) assert.ok(upperNorm(questions, at, 2) <= LARGEST_NORM);
});

test('the only row of an index is its own question', () => {
  assert.deepEqual([...vectorsBetween([Float32Array.of(1, 2)])], [1, 2]);
});
