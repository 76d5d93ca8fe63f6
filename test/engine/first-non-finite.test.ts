import assert from 'node:assert/strict';
import { test } from 'node:test';
import { firstNonFinite } from '../../src/engine/first-non-finite.ts';

test('the first value that is not finite is found', () => {
  assert.equal(firstNonFinite(Float32Array.of(1, Number.NaN, Number.POSITIVE_INFINITY)), 1);
  assert.equal(firstNonFinite(Float32Array.of(1, 2, Number.NEGATIVE_INFINITY)), 2);
  assert.equal(firstNonFinite(Float32Array.of(1, 2)), -1);
});
