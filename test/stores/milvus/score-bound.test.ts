import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METRICS, type Metric } from '../../../src/engine/metric.ts';
import { scoreFunction } from '../../../src/engine/vectors/score.ts';
import { LARGEST_NORM, MILVUS_SCORES } from '../../../src/stores/milvus/score-bound.ts';
import { checkedNorm } from '../../../src/stores/publish/publish-milvus.ts';
import { vectorsBetween } from '../../../src/stores/publish/verify-publication.ts';
import { upperNorm } from '../../../src/stores/published/published-row.ts';
import { seededNormal } from '../../helpers/seeded-random.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

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

/** As Knowhere's NormalizeVec does: a vector whose squared norm is within 1e-5 of 1 is left as it is. */
function knowhereNormalised(v: Float32Array, sum: Sum): Float32Array {
  const square = sum(products(v, v));
  if (square <= 0 || Math.abs(1 - square) <= fround(1e-5)) return v;
  const norm = fround(Math.sqrt(square));
  return v.map((value) => value / norm);
}

/** A vector with this square of its norm, up to the rounding of its values. */
function ofSquaredNorm(v: Float32Array, square: number): Float32Array {
  const norm = Math.sqrt(v.reduce((sum, value) => sum + value * value, 0));
  return v.map((value) => (value / norm) * Math.sqrt(square));
}

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
    const divided = (v: Float32Array): Float32Array => {
      const length = norm(v);
      return v.map((value) => value / length);
    };
    return [
      fround(fround(sum(products(q, x)) / norm(q)) / norm(x)),
      fround(sum(products(divided(q), x)) / norm(x)),
      sum(products(divided(q), divided(x))),
      sum(products(knowhereNormalised(q, sum), knowhereNormalised(x, sum))),
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
        const bound = MILVUS_SCORES.error(metric, { dimension, ...norms });
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

test('the bound holds for cosines of vectors that Knowhere does not normalise, because they nearly are', () => {
  const { 'one after another': sum } = SUMS;
  for (const dimension of [2, 25, 32, 64]) {
    const bound = MILVUS_SCORES.error('cosine', { dimension, queryNorm: 1, rowNorm: 1 });
    let largest = 0;
    for (const [q, x] of vectors(dimension, dimension)) {
      for (const [squareOfQ, squareOfX] of [
        [1 + 0.9e-5, 1 + 0.9e-5],
        [1 - 0.9e-5, 1 - 0.9e-5],
        [1 + 0.9e-5, 1 - 0.9e-5],
      ] as const) {
        const [near, other] = [ofSquaredNorm(q, squareOfQ), ofSquaredNorm(x, squareOfX)];
        const value = sum!(products(knowhereNormalised(near, sum!), knowhereNormalised(other, sum!)));
        const error = Math.abs(value - scoreFunction('cosine', dimension)(near, 0, other, 0));
        assert.ok(error <= bound, `${dimension} dimensions: ${error} with a bound of ${bound}`);
        largest = Math.max(largest, error);
      }
    }
    // Larger than any bound that only counts roundings of so few values.
    assert.ok(largest > 8.5e-6, `${largest}`);
  }
});

test('the bound holds where products and squares are too small for float32', () => {
  for (const [a, b] of [
    [2 ** -75, 2 ** -76],
    [2 ** -70, 2 ** -80],
    [1e-30, 1],
    [2 ** -149, 2 ** 40],
  ] as const) {
    const pairs: [Float32Array, Float32Array][] = [
      [Float32Array.of(a, 0), Float32Array.of(0, b)],
      [Float32Array.of(a, 0), Float32Array.of(b, 0)],
      [Float32Array.of(a, b), Float32Array.of(b, a)],
    ];
    for (const [q, x] of pairs) {
      for (const metric of ['inner-product', 'l2'] as const) {
        const norms = { queryNorm: upperNorm(q, 0, 2), rowNorm: upperNorm(x, 0, 2) };
        const exact = scoreFunction(metric, 2)(q, 0, x, 0);
        for (const value of WAYS[metric](q, x, SUMS['backwards']!)) {
          const error = Math.abs(value - exact);
          assert.ok(
            error <= MILVUS_SCORES.error(metric, { dimension: 2, ...norms }),
            `${metric} of ${a} and ${b}: ${error}`,
          );
        }
      }
    }
  }
});

test('a row whose scores float32 cannot hold is not published', () => {
  for (const metric of METRICS) {
    for (const value of [2 ** -41, 1e-44, 2 ** 41])
      assert.throws(
        () => checkedNorm(7, Float32Array.of(0, value), metric),
        trawlError('NOT_SUPPORTED', /Row 7 has a norm of .* Scale the vectors/),
      );
    for (const value of [2 ** -39, 1, 2 ** 39]) assert.ok(checkedNorm(7, Float32Array.of(0, value), metric) >= value);
  }
  assert.throws(
    () => checkedNorm(7, new Float32Array(2), 'cosine'),
    trawlError('NOT_SUPPORTED', /Row 7 is a zero vector/),
  );
  assert.equal(checkedNorm(7, new Float32Array(2), 'l2'), 0);
});

test('the bound of unit vectors is small beside the distances of neighbouring scores', () => {
  const norms = { queryNorm: 1, rowNorm: 1 };
  assert.ok(MILVUS_SCORES.error('inner-product', { dimension: 768, ...norms }) < 5e-5);
  assert.ok(MILVUS_SCORES.error('cosine', { dimension: 768, ...norms }) < 1.1e-4);
  assert.ok(MILVUS_SCORES.error('l2', { dimension: 768, ...norms }) < 2e-4);
});

test('a norm is never too small', () => {
  for (const value of [1, 1e-20, 1e20, 3.4e38]) {
    const vector = Float32Array.of(value, value, value);
    assert.ok(upperNorm(vector, 0, 3) >= Math.sqrt(3 * vector[0]! * vector[0]!));
  }
  assert.equal(upperNorm(new Float32Array(3), 0, 3), 0);
});

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
