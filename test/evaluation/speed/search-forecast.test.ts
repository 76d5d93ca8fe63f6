import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combinedRate, expectedSearch, plannedRows } from '../../../evaluation/speed/search-forecast.ts';
import { costOf, type SpeedTrial, TRIED_QUERIES } from '../../../evaluation/speed/speed-trial.ts';
import { trialRows } from '../../../evaluation/speed/trial-vectors.ts';
import { codesBytes } from '../../../src/engine/vectors/codes-size.ts';

/** 10 ns a row and query of codes, 4 ns of a prefilter, 1 ms fixed; 10 GB/s. */
const TRIAL: SpeedTrial = {
  ...{ dimension: 768, threads: 2, isa: 'avx2', readBytesPerS: 1e10 },
  codes: TRIED_QUERIES.map((queries) => ({ queries, fixedMs: 1, msPerRow: 1e-5 * queries })),
  prefilter: TRIED_QUERIES.map((queries) => ({ queries, fixedMs: 1, msPerRow: 4e-6 * queries })),
};
const NONE = { rows: 0, bytes: 0 };

test('a search takes the longer of scanning its rows and reading its bytes, and the fixed time', () => {
  const rows = 1_000_000;
  const [one, sixteen] = expectedSearch(TRIAL, { prefiltered: NONE, coded: { rows, bytes: 8e8 } });
  // One query: 10 ms of scanning, 80 ms of reading. 16: 160 ms of scanning.
  assert.deepEqual(one, { queries: 1, ms: 81, queriesPerS: 1 / 0.081, limit: 'memory' });
  assert.equal(sixteen!.limit, 'processor');
  assert.ok(Math.abs(sixteen!.ms - 161) < 1e-9);
  const [prefiltered] = expectedSearch(TRIAL, { prefiltered: { rows, bytes: 3.4e8 }, coded: NONE });
  assert.ok(Math.abs(prefiltered!.ms - 35) < 1e-9);
});

test('shards with and without prefilters add up, and more rows never take less time', () => {
  const part = { rows: 500_000, bytes: 4e8 };
  const both = expectedSearch(TRIAL, { prefiltered: { rows: 500_000, bytes: 1.7e8 }, coded: part });
  const alone = expectedSearch(TRIAL, { prefiltered: NONE, coded: part });
  for (const [i, { ms }] of both.entries()) assert.ok(ms > alone[i]!.ms);
});

test('vectors whose dimension gets no prefilter cost what their codes cost', () => {
  const searched = { prefiltered: { rows: 1_000, bytes: 1_000 }, coded: NONE };
  const coded = { prefiltered: NONE, coded: searched.prefiltered };
  assert.deepEqual(expectedSearch({ ...TRIAL, prefilter: null }, searched), expectedSearch(TRIAL, coded));
});

test('the cost of rows is the slope between two searches, and what is left is fixed', () => {
  const cost = costOf(1, { shortMs: 3, longMs: 9, shortRows: 1_000, longRows: 4_000 });
  assert.ok(Math.abs(cost.msPerRow - 0.002) < 1e-12);
  assert.ok(Math.abs(cost.fixedMs - 1) < 1e-9);
  // A disturbed trial: the larger search was faster.
  const disturbed = costOf(1, { shortMs: 9, longMs: 8, shortRows: 1_000, longRows: 4_000 });
  assert.deepEqual(disturbed, { queries: 1, msPerRow: 0.002, fixedMs: 7 });
  assert.ok(costOf(1, { shortMs: 1, longMs: 9, shortRows: 1_000, longRows: 4_000 }).fixedMs >= 0);
});

test('encoder and engine that share the cores answer fewer queries than either', () => {
  assert.equal(combinedRate(100, 100), 50);
  assert.ok(combinedRate(100, 1e9) < 100);
});

test('an index that is not built yet is expected with and without prefilters, or only without where it gets none', () => {
  const [withPrefilters, without] = plannedRows(21_000_000, { dimension: 768, shards: 21 });
  assert.equal(withPrefilters!.rows, 'with prefilters');
  assert.equal(without!.searched.coded.bytes, 21 * codesBytes(1_000_000, 768));
  const bytes = withPrefilters!.searched.prefiltered.bytes;
  assert.ok(bytes > 7e9 && bytes < 7.4e9, `${bytes}: docs/building.md says 7.2 GB`);
  for (const [rows, dimension] of [
    [270, 768],
    [1_000_000, 64],
  ] as const) {
    assert.deepEqual(
      plannedRows(rows, { dimension, shards: 1 }).map((part) => part.rows),
      ['without prefilters'],
    );
  }
});

test('trial rows are unit vectors with the mean cosine of E5, and the same every time', () => {
  const [rows, dimension] = [200, 768];
  const values = trialRows(rows, dimension, 1);
  assert.deepEqual(values, trialRows(rows, dimension, 1));
  assert.notDeepEqual(values.subarray(0, dimension), trialRows(rows, dimension, 2).subarray(0, dimension));
  const dot = (a: number, b: number): number => {
    let sum = 0;
    for (let i = 0; i < dimension; i++) sum += values[a * dimension + i]! * values[b * dimension + i]!;
    return sum;
  };
  let cosines = 0;
  for (let row = 0; row + 1 < rows; row++) {
    assert.ok(Math.abs(dot(row, row) - 1) < 1e-5);
    cosines += dot(row, row + 1);
  }
  assert.ok(Math.abs(cosines / (rows - 1) - 0.712) < 0.03);
});
