import assert from 'node:assert/strict';
import { test } from 'node:test';
import { APPROXIMATE_BASELINES } from '../../../bench/approximate/approximate-engine.ts';
import { recallOf } from '../../../bench/approximate/approximate-record.ts';
import { benchApproximate } from '../../../bench/approximate/bench-approximate.ts';
import { baselinePython } from '../../../bench/baselines.ts';
import { cacheFolder } from '../../../src/base/options/environment.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const python = baselinePython(cacheFolder('trawl'), 'flat');
const withoutBaselines = python === undefined ? 'the Python baselines are not installed: trawl bench baselines' : false;

const options = {
  ...{ rows: 3_000, dimension: 64, queries: 20, k: 10, efforts: [16, 256], runs: 1, threads: 1, seed: 1 },
  signal: new AbortController().signal,
  note: () => undefined,
};

test('recall is the share of the exact rows, in any order; missing and repeated rows do not count', () => {
  assert.equal(recallOf([1, 2, 3, 4], [2, 1, 4, 3], 2, 2), 1);
  assert.equal(recallOf([1, 2, 3, 4], [1, 9, -1, -1], 2, 2), 0.25);
  assert.equal(recallOf([1, 2], [1, 1], 1, 2), 0.5);
});

test('without Python only Trawl is measured, with recall 1, and each baseline is skipped with its reason', async (t) => {
  const cache = await tempFolder(t);
  const { records, skipped } = await benchApproximate({
    ...options,
    ...{ cache, scratch: cache, python: '/nonexistent/python', against: APPROXIMATE_BASELINES },
  });
  assert.deepEqual(
    records.map(({ engine, effort, recall, queries }) => ({ engine, effort, recall, queries })),
    [{ engine: 'trawl', effort: null, recall: 1, queries: 20 }],
  );
  assert.deepEqual(
    skipped.map(({ engine }) => engine),
    [...APPROXIMATE_BASELINES],
  );
  for (const { reason } of skipped) assert.match(reason, /ENOENT/);
});

test('graphs are measured at each setting, and find more rows with more effort', {
  skip: withoutBaselines,
}, async (t) => {
  const cache = await tempFolder(t);
  const { records, skipped } = await benchApproximate({
    ...options,
    ...{ cache, scratch: cache, python, against: APPROXIMATE_BASELINES },
  });
  assert.deepEqual(skipped, []);
  assert.deepEqual(
    records.map(({ engine, effort }) => [engine, effort]),
    [
      ['trawl', null],
      ['faiss', null],
      ...['faiss-hnsw', 'usearch-hnsw'].flatMap((engine) => [16, 256].map((effort) => [engine, effort])),
    ],
  );
  for (const record of records) {
    assert.ok(record.recall > 0 && record.recall <= 1, record.engine);
    assert.ok(record.p50Ms > 0 && record.p99Ms >= record.p50Ms && record.queriesPerS > 0);
    assert.equal(record.buildSeconds === null, record.effort === null);
  }
  for (const engine of ['faiss-hnsw', 'usearch-hnsw']) {
    const [little, much] = records.filter((record) => record.engine === engine);
    assert.ok(much!.recall >= little!.recall && much!.recall > 0.8, `${engine}: ${little!.recall}, ${much!.recall}`);
  }
});

test('more results than rows are refused', async (t) => {
  const cache = await tempFolder(t);
  const wrong = { ...options, rows: 5, cache, scratch: cache, python: undefined, against: [] };
  await assert.rejects(benchApproximate(wrong), { code: 'USAGE', message: /k is 10, but there are 5 rows/ });
});
