import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METRICS, type Metric } from '../../src/metric.ts';
import { scoreError, upperNorm } from '../../src/milvus/score-bound.ts';
import { scoreFunction } from '../../src/vector-index/score.ts';
import { seededNormal } from '../helpers/seeded-random.ts';

const { fround } = Math;
type Sum = (terms: readonly number[]) => number;

/** Orders in which programs add float32 terms. */
const SUMS: Readonly<Record<string, Sum>> = {
  'one after another': (terms) => terms.reduce((sum, term) => fround(sum + term), 0),
  backwards: (terms) => terms.reduceRight((sum, term) => fround(sum + term), 0),
  'in 16 lanes': (terms) => {
    const lanes = new Float32Array(16);
    for (const [i, term] of terms.entries()) lanes[i % 16] = lanes[i % 16]! + term;
    return lanes.reduce((sum, lane) => fround(sum + lane), 0);
  },
  'by halves': function halves(terms): number {
    if (terms.length <= 1) return terms[0] ?? 0;
    const middle = terms.length >> 1;
    return fround(halves(terms.slice(0, middle)) + halves(terms.slice(middle)));
  },
};

const products = (a: Float32Array, b: Float32Array): number[] => Array.from(a, (value, j) => fround(value * b[j]!));

/** The ways in which a metric is computed in float32. */
const WAYS: Readonly<Record<Metric, (q: Float32Array, x: Float32Array, sum: Sum) => number[]>> = {
  'inner-product': (q, x, sum) => [sum(products(q, x))],
  l2: (q, x, sum) => {
    const differences = q.map((value, j) => value - x[j]!);
    const ofNorms = fround(fround(sum(products(q, q)) + sum(products(x, x))) - fround(2 * sum(products(q, x))));
    return [-sum(products(differences, differences)), -ofNorms];
  },
  cosine: (q, x, sum) => {
    const norm = (v: Float32Array): number => fround(Math.sqrt(sum(products(v, v))));
    const divided = (v: Float32Array): Float32Array => v.map((value) => value / norm(v));
    return [
      fround(fround(sum(products(q, x)) / norm(q)) / norm(x)),
      fround(sum(products(divided(q), x)) / norm(x)),
      sum(products(divided(q), divided(x))),
    ];
  },
};

function vectors(dimension: number, seed: number): [Float32Array, Float32Array][] {
  const normal = seededNormal(seed);
  const random = (): Float32Array => Float32Array.from({ length: dimension }, () => normal());
  const near = random();
  const ones = new Float32Array(dimension).fill(1 / 3);
  return [
    [random(), random()],
    [near, near.map((value) => value * (1 + 2 ** -20))],
    // Rounds the same way at every step.
    [ones, ones],
    // Cancels to nothing.
    [ones, ones.map((value, j) => (j % 2 === 0 ? value : -value))],
    [random().map((value) => value * 1e6), random().map((value) => value * 1e-6)],
  ];
}

for (const metric of METRICS) {
  test(`the bound holds for ${metric} in float32, in any order of the sum`, () => {
    let largest = 0;
    for (const dimension of [1, 2, 63, 768, 4096]) {
      const score = scoreFunction(metric, dimension);
      for (const [q, x] of vectors(dimension, dimension)) {
        const norms = { queryNorm: upperNorm(q, 0, dimension), rowNorm: upperNorm(x, 0, dimension) };
        const bound = scoreError(metric, { dimension, ...norms });
        const exact = score(q, 0, x, 0);
        for (const [name, sum] of Object.entries(SUMS)) {
          for (const value of WAYS[metric](q, x, sum)) {
            const share = Math.abs(value - exact) / bound;
            assert.ok(share <= 1, `${name}, ${dimension} dimensions: ${share} of the bound`);
            largest = Math.max(largest, share);
          }
        }
      }
    }
    // The bound is not so wide that it says nothing.
    assert.ok(largest > 0.02, `${largest}`);
  });
}

test('the bound of unit vectors is small beside the distances of neighbouring scores', () => {
  const norms = { queryNorm: 1, rowNorm: 1 };
  assert.ok(scoreError('inner-product', { dimension: 768, ...norms }) < 5e-5);
  assert.ok(scoreError('cosine', { dimension: 768, ...norms }) < 1e-4);
  assert.ok(scoreError('l2', { dimension: 768, ...norms }) < 2e-4);
});

test('a norm is never too small', () => {
  for (const value of [1, 1e-20, 1e20, 3.4e38]) {
    const vector = Float32Array.of(value, value, value);
    assert.ok(upperNorm(vector, 0, 3) >= Math.sqrt(3 * vector[0]! * vector[0]!));
  }
  assert.equal(upperNorm(new Float32Array(3), 0, 3), 0);
});
