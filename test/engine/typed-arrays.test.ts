import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concatenated, firstNonFinite } from '../../src/engine/typed-arrays.ts';

test('the first value that is not finite is found', () => {
  assert.equal(firstNonFinite(Float32Array.of(1, Number.NaN, Number.POSITIVE_INFINITY)), 1);
  assert.equal(firstNonFinite(Float32Array.of(1, 2, Number.NEGATIVE_INFINITY)), 2);
  assert.equal(firstNonFinite(Float32Array.of(1, 2)), -1);
});

test('vectors are copied only if they do not follow each other in memory', () => {
  const all = Float32Array.of(0, 1, 2, 3, 4, 5);
  const [a, b, c] = [all.subarray(1, 3), all.subarray(3, 5), all.subarray(5, 6)];
  const following = concatenated([a, b, c]);
  assert.deepEqual([...following], [1, 2, 3, 4, 5]);
  assert.equal(following.buffer, all.buffer);
  for (const apart of [
    [b, a],
    [a, c],
    [a, Float32Array.of(9)],
    [a, a],
  ]) {
    const copied = concatenated(apart);
    assert.deepEqual(
      [...copied],
      apart.flatMap((each) => [...each]),
    );
    assert.notEqual(copied.buffer, all.buffer);
  }
  assert.equal(concatenated([]).length, 0);
});
