import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METRICS, type Metric } from '../../src/metric.ts';
import { MAX_NAMED_ROWS } from '../../src/milvus/candidate-source.ts';
import { MilvusIndex } from '../../src/milvus/milvus-index.ts';
import { RowBitmap } from '../../src/row-bitmap.ts';
import { TopK } from '../../src/top-k.ts';
import { referenceSearch } from '../../src/vector-index/reference-search.ts';
import type { SearchResult } from '../../src/vector-index/vector-index.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { normalRows, type Rows, ternaryRows } from '../vector-index/index-files.ts';
import { FakeCandidates, type FakeOptions } from './fake-candidates.ts';

function indexOf(
  { values, dimension }: Rows,
  metric: Metric,
  options: Partial<FakeOptions> & { scoresEveryRow?: boolean } = {},
): { index: MilvusIndex; fake: FakeCandidates } {
  const { scoresEveryRow = true, liveRows, ...others } = options;
  const fake = new FakeCandidates({ values, dimension, metric, liveRows, ...others });
  const { rows, largestNorm } = fake;
  return { fake, index: new MilvusIndex(fake, { dimension, rows, metric, liveRows, largestNorm, scoresEveryRow }) };
}

interface Asked {
  readonly queries: Float32Array;
  readonly k: number;
  readonly filter?: RowBitmap | undefined;
}

/** The answer by definition: every row scored. */
function expected({ values, dimension }: Rows, metric: Metric, { queries, k, filter }: Asked) {
  const count = queries.length / dimension;
  const heaps = Array.from({ length: count }, () => new TopK(k));
  const rowCount = values.length / dimension;
  referenceSearch({ rows: values, rowCount, dimension, metric, queries, queryCount: count, filter }, heaps);
  return heaps.map((heap) => heap.sorted());
}

function listsOf({ counts, rows, scores }: SearchResult, k: number) {
  return Array.from(counts, (count, q) => ({
    rows: [...rows.subarray(q * k, q * k + count)],
    scores: [...scores.subarray(q * k, q * k + count)],
  }));
}

async function assertSame(index: MilvusIndex, rows: Rows, metric: Metric, asked: Asked): Promise<SearchResult> {
  const { filter, ...request } = asked;
  const count = asked.queries.length / rows.dimension;
  const found = await index.search({ ...request, count, ...(filter === undefined ? {} : { filter }) });
  assert.deepEqual(listsOf(found, asked.k), expected(rows, metric, asked));
  assert.equal(found.exact, true);
  return found;
}

function randomBitmap(rows: number, share: number, seed: number): RowBitmap {
  const random = seededRandom(seed);
  const bitmap = new RowBitmap(rows);
  for (let row = 0; row < rows; row++) if (random() < share) bitmap.add(row);
  return bitmap;
}

/** Rows of which many are equal, and many nearly equal. */
function crowdedRows(count: number, dimension: number): Rows {
  const { values } = normalRows(count, dimension, 3);
  for (let row = 1; row < count; row++) {
    const target = values.subarray(row * dimension, (row + 1) * dimension);
    if (row % 3 === 0) target.set(values.subarray(0, dimension));
    if (row % 3 === 1)
      target.set(
        values.subarray(0, dimension).map((value, j) => (j === row % dimension ? value * (1 + 2 ** -22) : value)),
      );
  }
  return { values, dimension };
}

for (const metric of METRICS) {
  test(`with ${metric}, the hits and scores have the bits of a scan of every row, however wrong the first pass may be`, async () => {
    for (const rows of [normalRows(700, 16, 1), ternaryRows(700, 16, 2), crowdedRows(700, 16)]) {
      // Cosines of zero rows are not defined in Milvus, and such rows are not published.
      for (let row = 0; row < 700; row++) if (metric === 'cosine') rows.values[row * 16] ||= 1;
      const { index } = indexOf(rows, metric);
      const queries = Float32Array.from([...normalRows(4, 16, 9).values, ...rows.values.subarray(0, 32)]);
      for (const k of [1, 10, 99, 700, 800]) await assertSame(index, rows, metric, { queries, k });
    }
  });

  test(`with ${metric}, a filter and deleted rows leave the rows that may be returned, at any share of them`, async () => {
    const rows = crowdedRows(9_000, 4);
    for (const liveRows of [undefined, randomBitmap(9_000, 0.7, 4)]) {
      const { index, fake } = indexOf(rows, metric, { liveRows });
      const queries = Float32Array.from([...normalRows(1, 4, 8).values, ...rows.values.subarray(0, 4)]);
      await assertSame(index, rows, metric, { queries, k: 7, filter: liveRows });
      for (const share of [0, 0.001, 0.3, 0.55, 0.999, 1]) {
        const chosen = randomBitmap(9_000, share, 6);
        const filter = liveRows === undefined ? chosen : chosen.intersection(liveRows);
        await assertSame(index, rows, metric, { queries, k: 7, filter });
      }
      const types = new Set(fake.asked.map(({ condition }) => condition.type));
      assert.ok(types.has('in') && types.has('not-in') && types.has('all'), [...types].join(', '));
    }
  });
}

test('more equal rows than Milvus returns at once are answered by the lowest of them', async () => {
  const values = new Float32Array(40_000 * 2).fill(1);
  const rows = { values, dimension: 2 };
  const { index, fake } = indexOf(rows, 'inner-product');
  const found = await index.search({ queries: Float32Array.of(1, 1), count: 1, k: 5 });
  assert.deepEqual([...found.rows], [0, 1, 2, 3, 4]);
  assert.ok(fake.asked.some(({ condition }) => condition.type === 'range'));
  assert.ok(fake.asked.every(({ condition }) => condition.type !== 'in' || condition.rows.length <= MAX_NAMED_ROWS));
});

test('a filter with too many rows to name and too few to be among the candidates is searched part by part', async () => {
  const count = 60_000;
  const values = new Float32Array(count * 2);
  // The allowed rows are the farthest from the query.
  for (let row = 0; row < count; row++) values.set([row < 50_000 ? 2 : 1, row % 7], row * 2);
  const filter = new RowBitmap(count);
  for (let row = 50_000; row < count; row++) filter.add(row);
  const rows = { values, dimension: 2 };
  const { index } = indexOf(rows, 'inner-product', { wrong: 0.1 });
  await assertSame(index, rows, 'inner-product', { queries: Float32Array.of(1, 0), k: 3, filter });
});

test('queries of any length are answered: zero, tiny and as large as float32', async () => {
  const rows = normalRows(300, 8, 1);
  const random = normalRows(1, 8, 2).values;
  for (const metric of ['inner-product', 'cosine'] as const) {
    const { index, fake } = indexOf(rows, metric);
    for (const scale of [0, 1e-44, 1e-30, 1e30]) {
      const queries = random.map((value) => value * scale);
      await assertSame(index, rows, metric, { queries, k: 5 });
    }
    const filter = randomBitmap(300, 0.1, 3);
    await assertSame(index, rows, metric, { queries: new Float32Array(8), k: 50, filter });
    assert.ok(fake.asked.length > 0);
  }
  const { index } = indexOf(rows, 'l2');
  await assertSame(index, rows, 'l2', { queries: new Float32Array(8), k: 5 });
  const far = index.search({ queries: random.map((value) => value * 1e30), count: 1, k: 5 });
  await assert.rejects(far, trawlError('NOT_SUPPORTED', /norm of .*Scale the vectors down/));
});

test('few vectors are fetched where the first pass is good', async () => {
  const rows = normalRows(5_000, 32, 1);
  const { index, fake } = indexOf(rows, 'cosine', { wrong: 0.01 });
  const queries = normalRows(8, 32, 2).values;
  const found = await assertSame(index, rows, 'cosine', { queries, k: 10 });
  assert.ok(fake.fetched < 8 * 30, `${fake.fetched}`);
  assert.equal(fake.asked.length, 1);
  assert.equal(
    [...found.certificate!.rescored].reduce((sum, each) => sum + each, 0),
    fake.fetched,
  );
});

test('an answer with missing candidates is refused, never given', async () => {
  const rows = normalRows(500, 8, 1);
  const lost = (keep: number) =>
    indexOf(rows, 'l2', {
      damage: (found) => ({ rows: found.rows.slice(0, keep), values: found.values.slice(0, keep) }),
    });
  for (const keep of [0, 1, 41]) {
    const { index } = lost(keep);
    const search = index.search({ queries: normalRows(1, 8, 2).values, count: 1, k: 10 });
    await assert.rejects(search, trawlError('STORE_FAILED', /candidates of 42: the answer would be incomplete/));
  }
  const repeated = indexOf(rows, 'l2', {
    damage: (found) => ({ rows: found.rows.map((row, i) => (i === 3 ? found.rows[2]! : row)), values: found.values }),
  });
  const search = repeated.index.search({ queries: normalRows(1, 8, 2).values, count: 1, k: 10 });
  await assert.rejects(search, trawlError('STORE_FAILED', /returned 41 candidates of 42/));
});

test('an approximate index says that its answers are not exact, and may return fewer', async () => {
  const rows = normalRows(500, 8, 1);
  const { index } = indexOf(rows, 'cosine', {
    scoresEveryRow: false,
    damage: (found) => ({ rows: found.rows.slice(0, 4), values: found.values.slice(0, 4) }),
  });
  const found = await index.search({ queries: normalRows(2, 8, 2).values, count: 2, k: 10 });
  assert.equal(found.exact, false);
  assert.deepEqual([...found.counts], [4, 4]);
  assert.deepEqual([...found.rows.subarray(4, 10)], [-1, -1, -1, -1, -1, -1]);
});

test('requests that no engine takes are refused, and a closed index and an aborted search too', async () => {
  const { index } = indexOf(normalRows(50, 8, 1), 'l2');
  const queries = normalRows(1, 8, 2).values;
  await assert.rejects(index.search({ queries, count: 2, k: 1 }), trawlError('DIMENSION_MISMATCH', /16 values/));
  await assert.rejects(index.search({ queries, count: 1, k: 1, filter: new RowBitmap(51) }), RangeError);
  await assert.rejects(
    index.search({ queries, count: 1, k: 1, signal: AbortSignal.abort() }),
    trawlError('CANCELLED', /cancelled/),
  );
  await index.close();
  await assert.rejects(index.search({ queries, count: 1, k: 1 }), trawlError('NOT_READY', /closed/));
});
