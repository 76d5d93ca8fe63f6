import assert from 'node:assert/strict';
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { rowFiles, writeRows } from '../../../bench/size/row-files.ts';
import { scanRows } from '../../../bench/size/scan-rows.ts';
import { SyntheticVectors } from '../../../bench/vectors/synthetic-vectors.ts';
import { basisOfSpectrum } from '../../../bench/vectors/vector-basis.ts';
import { decodeFp16Header } from '../../../src/engine/vectors/faiss-format.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const DIMENSION = 96;
const ROWS = 600;
const basis = basisOfSpectrum(DIMENSION);
const quiet = { signal: new AbortController().signal, note: () => {} };

test('the compiled generator writes the synthetic rows, and a scan of its files finds the best of them', async (t) => {
  const folder = await tempFolder(t);
  const { header, pieces } = await writeRows(folder, { basis, seed: 7, rows: ROWS }, quiet);
  assert.deepEqual(decodeFp16Header(readFileSync(header), header), {
    rows: ROWS,
    dimension: DIMENSION,
    metric: 'inner-product',
  });
  const bytes = readFileSync(pieces[0]!.path);
  assert.equal(bytes.length, ROWS * DIMENSION * 2);
  const expected = new Float32Array(ROWS * DIMENSION);
  new SyntheticVectors(basis, { seed: 7, float16: true }).fill('rows', 0, ROWS, expected);
  const found = Float32Array.from(new Uint16Array(bytes.buffer, bytes.byteOffset, expected.length), halfToNumber);
  // Sums in another order differ in the last bit of a few values.
  let different = 0;
  for (const [i, value] of found.entries()) {
    if (value !== expected[i]) different++;
    assert.ok(Math.abs(value - expected[i]!) < 2e-4, `value ${i} is ${value}, not ${expected[i]}`);
  }
  assert.ok(different < expected.length / 100, `${different} of ${expected.length} values differ`);

  const queries = new Float32Array(4 * DIMENSION);
  new SyntheticVectors(basis, { seed: 7, float16: false }).fill('queries', 0, 4, queries);
  const best = await scanRows(pieces, { queries, dimension: DIMENSION, k: 5, note: () => {} });
  for (const [q, list] of best.entries()) {
    const all = Array.from({ length: ROWS }, (_, row) => {
      let score = 0;
      for (let j = 0; j < DIMENSION; j++) score += queries[q * DIMENSION + j]! * found[row * DIMENSION + j]!;
      return { row, score };
    });
    assert.deepEqual(list, all.sort((a, b) => b.score - a.score || a.row - b.row).slice(0, 5));
  }
});

test('rows are in files of a million, and a later run makes only those that are missing or short; a scan refuses a short one', async (t) => {
  assert.deepEqual(
    rowFiles('f', 2_500_000).pieces.map(({ path, first, rows }) => [path, first, rows]),
    [
      ['f/001', 0, 1_000_000],
      ['f/002', 1_000_000, 1_000_000],
      ['f/003', 2_000_000, 500_000],
    ],
  );
  const folder = await tempFolder(t);
  const shape = { basis, seed: 7, rows: 10 };
  const { pieces } = await writeRows(folder, shape, quiet);
  const { path } = pieces[0]!;
  const whole = readFileSync(path);
  writeFileSync(path, new Uint8Array(whole.length));
  await writeRows(folder, shape, quiet);
  assert.ok(
    readFileSync(path).every((byte) => byte === 0),
    'a whole file was written again',
  );
  truncateSync(path, whole.length - 1);
  await writeRows(folder, shape, quiet);
  assert.deepEqual(readFileSync(path), whole);
  rmSync(path);
  await writeRows(folder, shape, quiet);
  assert.equal(statSync(path).size, whole.length);
  const scan = (count: number) =>
    scanRows(pieces, { queries: new Float32Array(count * DIMENSION), dimension: DIMENSION, k: 3, note: () => {} });
  await assert.rejects(scan(3), /multiple of 4 queries, not 3/);
  truncateSync(path, 100);
  await assert.rejects(scan(4), /shorter than 10 rows/);
});

function halfToNumber(half: number): number {
  const [sign, exponent, fraction] = [half >> 15 ? -1 : 1, (half >> 10) & 31, half & 1023];
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}
