import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plantHits, trialRows, trialVectors } from '../../../evaluation/speed/trial-vectors.ts';

const [dimension, count, queryCount] = [96, 2_048, 16];

function scores(rows: Float32Array, query: Float32Array): number[] {
  return Array.from({ length: rows.length / dimension }, (_, row) =>
    query.reduce((sum, value, i) => sum + value * rows[row * dimension + i]!, 0),
  );
}

test('each query has one hit, whose score is above those of all other rows and rises with the rows of the index', () => {
  const queries = trialRows(queryCount, dimension, 2);
  const best = [1e-5, 1e-7].map((share) => {
    const rows = trialRows(count, dimension, 1);
    plantHits(rows, queries, dimension, share);
    return Array.from({ length: queryCount }, (_, i) => {
      const all = scores(rows, queries.subarray(i * dimension, (i + 1) * dimension));
      const most = Math.max(...all);
      assert.equal(all.indexOf(most), i);
      return most;
    });
  });
  for (let i = 0; i < queryCount; i++) assert.ok(best[1]![i]! > best[0]![i]!);
});

test('rows with hits are still unit vectors, and all others are unchanged', () => {
  const rows = trialRows(count, dimension, 1);
  const queries = trialRows(queryCount, dimension, 2);
  const before = rows.slice();
  plantHits(rows, queries, dimension, 1e-6);
  assert.deepEqual(rows.subarray(queryCount * dimension), before.subarray(queryCount * dimension));
  for (let row = 0; row < queryCount; row++) {
    const values = rows.subarray(row * dimension, (row + 1) * dimension);
    assert.ok(Math.abs(values.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-5);
  }
});

test('a query that equals a row gets a hit too, without NaN', () => {
  const rows = trialRows(count, dimension, 1);
  const queries = rows.slice(0, dimension);
  plantHits(rows, queries, dimension, 1e-6);
  assert.ok(rows.every(Number.isFinite));
});

test('the trial of a large index has a hit of each query above all other rows, and that of a small one has its own rows alone', () => {
  const [large, small] = [100_000_000, 10_000].map((rows) => trialVectors({ dimension, rows }, 512));
  assert.deepEqual(large!.queries, small!.queries);
  assert.equal(large!.share, 1e-7);
  assert.deepEqual(small!.rows, trialRows(small!.rows.length / dimension, dimension, 1));
  for (let i = 0; i < large!.queries.length / dimension; i += 100) {
    const all = scores(large!.rows, large!.queries.subarray(i * dimension, (i + 1) * dimension));
    assert.equal(all.indexOf(Math.max(...all.slice(0, 20_000))), i);
  }
});
