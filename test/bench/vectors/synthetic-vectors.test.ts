import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GaussianRandom } from '../../../bench/vectors/gaussian-random.ts';
import { SyntheticVectors } from '../../../bench/vectors/synthetic-vectors.ts';
import { basisOfFile, basisOfSpectrum, type VectorBasis } from '../../../bench/vectors/vector-basis.ts';
import { decodeFloat16, narrowToFloat16, widenFloat16 } from '../../../src/base/system/float16.ts';
import { sharedData, withoutSharedData } from '../../helpers/shared-data.ts';

const E5_SAMPLE = 'flashrag_sample/e5_flat_sample.index';

function rowsOf(basis: VectorBasis, count: number, { seed = 1, first = 0, float16 = false } = {}): Float32Array {
  const rows = new Float32Array(count * basis.dimension);
  new SyntheticVectors(basis, { seed, float16 }).fill('rows', first, count, rows);
  return rows;
}

/** Mean and variance of each dimension. */
function moments(rows: Float32Array, dimension: number): { mean: Float64Array; variances: Float64Array } {
  const count = rows.length / dimension;
  const mean = new Float64Array(dimension);
  const variances = new Float64Array(dimension);
  for (const [i, value] of rows.entries()) mean[i % dimension]! += value / count;
  for (const [i, value] of rows.entries()) variances[i % dimension]! += (value - mean[i % dimension]!) ** 2 / count;
  return { mean, variances };
}

const sum = (values: Float64Array): number => values.reduce((total, value) => total + value, 0);

test('a row depends only on its number and the seed', () => {
  const basis = basisOfSpectrum(48);
  const rows = rowsOf(basis, 100);
  assert.deepEqual(rowsOf(basis, 100), rows);
  assert.deepEqual(rowsOf(basis, 10, { first: 37 }), rows.slice(37 * 48, 47 * 48));
  assert.notDeepEqual(rowsOf(basis, 100, { seed: 2 }), rows);
  const queries = new Float32Array(100 * 48);
  new SyntheticVectors(basis, { seed: 1, float16: false }).fill('queries', 0, 100, queries);
  assert.notDeepEqual(queries, rows);
});

test('Random is the generator sfc32, on every machine', () => {
  const [a, b, c] = [new GaussianRandom(1, 2, 3), new GaussianRandom(1, 2, 3), new GaussianRandom(1, 2, 4)];
  assert.deepEqual([a.word(), a.word()], [b.word(), b.word()]);
  assert.notEqual(a.word(), c.word());
  const random = new GaussianRandom(0, 0, 0);
  assert.deepEqual([random.word(), random.word()], [-78_461_664, 947_923_937]);
});

test('rows have unit length', () => {
  for (const [float16, tolerance] of [
    [false, 1e-6],
    [true, 1e-3],
  ] as const) {
    const rows = rowsOf(basisOfSpectrum(64), 500, { float16 });
    for (let i = 0; i < 500; i++) {
      let square = 0;
      for (const value of rows.subarray(i * 64, (i + 1) * 64)) square += value * value;
      assert.ok(Math.abs(Math.sqrt(square) - 1) < tolerance, `row ${i} has the length ${Math.sqrt(square)}`);
    }
  }
});

test('without real vectors, two rows have the documented mean cosine', () => {
  const { mean } = moments(rowsOf(basisOfSpectrum(256), 4000), 256);
  const cosine = sum(mean.map((value) => value * value));
  assert.ok(Math.abs(cosine - 0.712) < 0.02, `mean cosine ${cosine}`);
});

test("rows like E5's have E5's mean cosine and variances", { skip: withoutSharedData(E5_SAMPLE) }, () => {
  const basis = basisOfFile(sharedData(E5_SAMPLE));
  const { mean, variances } = moments(rowsOf(basis, 4000), 768);
  const cosine = sum(mean.map((value) => value * value));
  const real = sum(Float64Array.from(basis.mean, (value) => value * value));
  assert.ok(Math.abs(cosine - real) < 0.01, `mean cosine ${cosine}, E5's ${real}`);
  const realVariances = new Float64Array(768);
  for (const [i, value] of basis.centred.entries()) realVariances[i % 768]! += value ** 2 / basis.count;
  assert.ok(
    Math.abs(sum(variances) / sum(realVariances) - 1) < 0.05,
    `variance ${sum(variances)} for ${sum(realVariances)}`,
  );
  const off = sum(variances.map((variance, j) => Math.abs(variance - realVariances[j]!))) / sum(realVariances);
  assert.ok(off < 0.1, `the variances are off by ${off}`);
});

test('rounding to float16 gives the nearest one', () => {
  const bytes = new Uint8Array(new Uint16Array(Array.from({ length: 0x7c00 }, (_, i) => i)).buffer);
  const halves = new Float32Array(0x7c00);
  decodeFloat16(bytes, halves, halves.length);
  const random = new GaussianRandom(5, 5, 5);
  for (let i = 0; i < 20_000; i++) {
    const value = Math.fround(random.gaussian() * 2 ** -random.below(30));
    const rounded = Math.abs(widenFloat16(narrowToFloat16(Float32Array.of(value)))[0]!);
    const above = halves.findIndex((half) => half >= Math.abs(value));
    const nearest = [halves[above]!, halves[Math.max(0, above - 1)]!].map((half) => Math.abs(half - Math.abs(value)));
    assert.ok(halves.includes(rounded), `${value} became ${rounded}, which is not a float16`);
    assert.equal(Math.abs(rounded - Math.abs(value)), Math.min(...nearest), `${value} became ${rounded}`);
  }
});
