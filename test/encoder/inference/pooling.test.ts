import assert from 'node:assert/strict';
import { test } from 'node:test';
import { normalizeL2, pool, truncated } from '../../../src/encoder/inference/pooling.ts';
import { firstNonFinite } from '../../../src/engine/typed-arrays.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const two = Float32Array.of(1, 2, 3, 5, 6, 9);

test('mean averages the token vectors, cls takes the first, last the last, none and pooler the only one', () => {
  assert.deepEqual(pool(two, 2, 'mean'), Float32Array.of(3, 4, 6));
  assert.deepEqual(pool(two, 2, 'cls'), Float32Array.of(1, 2, 3));
  assert.deepEqual(pool(two, 2, 'last'), Float32Array.of(5, 6, 9));
  const one = Float32Array.of(7, 8);
  assert.deepEqual(pool(one, 1, 'none'), Float32Array.of(7, 8));
  assert.deepEqual(pool(one, 1, 'pooler'), Float32Array.of(7, 8));
});

test('an output of the wrong size, and token vectors without a pooling, are refused', () => {
  assert.throws(() => pool(two, 4, 'mean'), trawlError('ENCODER_FAILED', /returned 6 values for 4 tokens/));
  assert.throws(() => pool(two, 0, 'last'), trawlError('ENCODER_FAILED'));
  assert.throws(() => pool(two, 2, 'none'), /one vector per text, but the model returned 2\. Import the model again/);
});

test('the mean is summed in float64', () => {
  // In float32 the ones would vanish beside 2^24.
  const data = Float32Array.of(2 ** 24, ...new Array<number>(255).fill(1));
  assert.equal(pool(data, 256, 'mean')[0], Math.fround((2 ** 24 + 255) / 256));
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
