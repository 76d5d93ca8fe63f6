import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalizeL2, pool, truncated } from '../../../src/encoder/inference/pooling.ts';
import { firstNonFinite } from '../../../src/engine/first-non-finite.ts';

const two = { data: Float32Array.of(1, 2, 3, 5, 6, 9), tokens: 2, dimension: 3 };

test('mean averages the token vectors, cls takes the first, last the last, none and pooler the only one', () => {
  assert.deepEqual(pool(two, 'mean'), Float32Array.of(3, 4, 6));
  assert.deepEqual(pool(two, 'cls'), Float32Array.of(1, 2, 3));
  assert.deepEqual(pool(two, 'last'), Float32Array.of(5, 6, 9));
  const one = { data: Float32Array.of(7, 8), tokens: 1, dimension: 2 };
  assert.deepEqual(pool(one, 'none'), Float32Array.of(7, 8));
  assert.deepEqual(pool(one, 'pooler'), Float32Array.of(7, 8));
});

test('an output of the wrong size is refused', () => {
  assert.throws(() => pool({ ...two, tokens: 3 }, 'mean'), /6 values; expected 3 × 3/);
  assert.throws(() => pool(two, 'none'), /one vector per text, but the model returned 2\. Import the model again/);
});

test('the mean is summed in float64', () => {
  // In float32 the ones would vanish beside 2^24.
  const data = Float32Array.of(2 ** 24, ...new Array<number>(255).fill(1));
  assert.equal(pool({ data, tokens: 256, dimension: 1 }, 'mean')[0], Math.fround((2 ** 24 + 255) / 256));
});

test('normalised vectors have length one and zero stays zero', () => {
  assert.deepEqual(normalizeL2(Float32Array.of(3, 4)), Float32Array.of(0.6, 0.8));
  assert.deepEqual(normalizeL2(new Float32Array(4)), new Float32Array(4));
  const extreme = normalizeL2(Float32Array.of(1e-40, 1e-40));
  assert.ok(Math.abs(extreme[0]! - Math.SQRT1_2) < 1e-6);
  assert.ok(Math.abs(normalizeL2(Float32Array.of(3e38, 3e38))[0]! - Math.SQRT1_2) < 1e-6);
});

test('a vector is truncated as it is, or after a layer norm of all its values', () => {
  const vector = Float32Array.of(4, 1, -3, 6);
  assert.deepEqual(truncated(vector, 2, undefined), Float32Array.of(4, 1));
  // Mean 2, variance (4 + 1 + 25 + 16) / 4.
  const deviation = Math.sqrt(11.5 + 1e-5);
  assert.deepEqual(truncated(vector, 3, 'layer-norm'), Float32Array.of(2 / deviation, -1 / deviation, -5 / deviation));
  assert.deepEqual(truncated(new Float32Array(4), 2, 'layer-norm'), new Float32Array(2));
  assert.equal(firstNonFinite(truncated(Float32Array.of(1, 2, Number.NaN), 2, 'layer-norm')), 0);
});
