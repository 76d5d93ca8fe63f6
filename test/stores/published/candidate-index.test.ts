import assert from 'node:assert/strict';
import { test } from 'node:test';
import { METRICS, type Metric } from '../../../src/engine/metric.ts';
import { referenceSearch } from '../../../src/engine/reference/reference-search.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { TopK } from '../../../src/engine/top-k.ts';
import type { SearchResult } from '../../../src/engine/vectors/vector-index.ts';
import { pushedFilters } from '../../../src/stores/milvus/column-keys.ts';
import { MILVUS_SCORES } from '../../../src/stores/milvus/score-bound.ts';
import { CandidateIndex } from '../../../src/stores/published/candidate-index.ts';
import { type Candidates, MAX_NAMED_ROWS, type StoreFilters } from '../../../src/stores/published/candidate-source.ts';
import { normalRows, type Rows, ternaryRows } from '../../engine/vectors/index-files.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeCandidates, type FakeOptions } from './fake-candidates.ts';

function indexOf(
  { values, dimension }: Rows,
  metric: Metric,
  options: Partial<FakeOptions> & { scoresEveryRow?: boolean; pushed?: StoreFilters } = {},
): { index: CandidateIndex; fake: FakeCandidates } {
  const { scoresEveryRow = true, liveRows, pushed, ...others } = options;
  const fake = new FakeCandidates({ values, dimension, metric, liveRows, ...others });
  const { rows, largestNorm } = fake;
  const facts = { dimension, rows, metric, liveRows, largestNorm, scores: MILVUS_SCORES, scoresEveryRow, pushed };
  return { fake, index: new CandidateIndex(fake, facts) };
}

interface Asked {
  readonly queries: Float32Array;
  readonly k: number;
  readonly filter?: RowBitmap;
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

async function assertSame(index: CandidateIndex, rows: Rows, metric: Metric, asked: Asked): Promise<SearchResult> {
  const { filter, ...request } = asked;
  const count = asked.queries.length / rows.dimension;
  const found = await index.search({ ...request, count, filter });
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

  test(`with ${metric}, the hits and scores are those of a scan where the first pass computes in float32`, async () => {
    for (const rows of [normalRows(700, 25, 1), crowdedRows(700, 25)]) {
      const { index } = indexOf(rows, metric, { float32: true });
      const queries = Float32Array.from([...normalRows(4, 25, 9).values, ...rows.values.subarray(0, 50)]);
      for (const k of [1, 10, 99]) await assertSame(index, rows, metric, { queries, k });
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

test('a row that Milvus ranks too low, because it does not normalise it, is found', async () => {
  // Cosines with (1, 0): the best row has a norm that is too small, and the others are just behind it.
  const of = (cosine: number, norm: number): number[] => [cosine * norm, Math.sqrt(1 - cosine ** 2) * norm];
  const others = Array.from({ length: 200 }, (_, i) => of(i === 0 ? 0.9 : 0.9 - 3e-6, 1));
  const values = Float32Array.from([...others, of(0.9 + 1e-6, Math.sqrt(1 - 0.9e-5))].flat());
  const rows = { values, dimension: 2 };
  const { index, fake } = indexOf(rows, 'cosine', { float32: true });
  const queries = Float32Array.of(1, 0);
  const first = await fake.search(queries, { count: 1, limit: 33, among: 1, condition: { type: 'all' } });
  assert.ok(!first[0]!.rows.includes(200));
  const found = await assertSame(index, rows, 'cosine', { queries, k: 1 });
  assert.equal(found.rows[0], 200);
});

test('a row that was not published, is deleted, or was not asked for is refused, never counted', async () => {
  const rows = normalRows(500, 8, 1);
  const queries = normalRows(1, 8, 2).values;
  const liveRows = randomBitmap(500, 0.9, 4);
  const deleted = liveRows.complement().next(0)!;
  for (const foreign of [500, -1, 2.5, deleted]) {
    // In the place of a row, as if it were one of them.
    const damage = (found: Candidates): Candidates => ({ ...found, rows: found.rows.with(-1, foreign) });
    const { index } = indexOf(rows, 'l2', { liveRows, damage });
    for (const k of [1, 10, 449]) {
      if (k >= liveRows.count()) continue;
      const search = index.search({ queries, count: 1, k });
      await assert.rejects(search, trawlError('STORE_DIFFERS', new RegExp(`returned row ${foreign}, .*written to`)));
    }
  }
  const filter = randomBitmap(500, 0.2, 6);
  const other = filter.complement().next(0)!;
  const damage = (found: Candidates): Candidates => ({ ...found, rows: found.rows.with(-1, other) });
  const search = indexOf(rows, 'l2', { damage }).index.search({ queries, count: 1, k: 5, filter });
  await assert.rejects(search, trawlError('STORE_DIFFERS', /among the published rows that were asked for/));
});

test('one candidate more than there are rows is asked for, so that a row too many shows', async () => {
  const rows = normalRows(20, 8, 1);
  const { index, fake } = indexOf(rows, 'l2');
  await assertSame(index, rows, 'l2', { queries: normalRows(1, 8, 2).values, k: 5 });
  assert.deepEqual(
    fake.asked.map(({ limit }) => limit),
    [21],
  );
});

test('an ordinary filter takes few searches, however many hits are wanted', async () => {
  const rows = normalRows(50_000, 2, 1);
  const filter = new RowBitmap(50_000);
  for (let row = 0; row < 50_000; row += 9) filter.add(row);
  const queries = normalRows(1, 2, 2).values;
  for (const [k, most] of [
    [1_000, 1],
    [3_000, 5],
  ] as const) {
    const { index, fake } = indexOf(rows, 'inner-product', { wrong: 0.001 });
    await assertSame(index, rows, 'inner-product', { queries, k, filter });
    assert.ok(fake.asked.length <= most, `${fake.asked.length} searches for k ${k}`);
  }
});

test('no more rows than are wanted are scored without a first pass, exactly even if that is approximate', async () => {
  const rows = normalRows(500, 8, 1);
  const queries = normalRows(3, 8, 2).values;
  const filter = randomBitmap(500, 0.1, 3);
  for (const metric of METRICS) {
    const { index, fake } = indexOf(rows, metric, {
      scoresEveryRow: false,
      damage: (found) => ({ rows: found.rows.slice(0, 2), values: found.values.slice(0, 2) }),
    });
    await assertSame(index, rows, metric, { queries, k: filter.count(), filter });
    assert.equal(fake.asked.length, 0);
    assert.equal(fake.fetched, filter.count());
  }
});

test('calls have at most 2^21 values, however many queries and dimensions there are', async () => {
  const dimension = 2 ** 15;
  const rows = normalRows(70, dimension, 1);
  const { index, fake } = indexOf(rows, 'inner-product', { wrong: 0.01 });
  const found = await index.search({ queries: rows.values, count: 70, k: 1 });
  assert.deepEqual([...found.rows], [...Array(70).keys()]);
  assert.ok(fake.asked.every(({ count }) => count <= 64));
  assert.ok(fake.fetchedAtOnce <= 64, `${fake.fetchedAtOnce} vectors`);
  fake.fetchedAtOnce = 0;
  await index.search({ queries: rows.values.subarray(0, dimension), count: 1, k: 70 });
  assert.equal(fake.fetchedAtOnce, 64);
});

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

/** A filter over column 0, whose rows and expression are known. */
async function pushedFilter(rows: RowBitmap): Promise<StoreFilters> {
  const pushed = pushedFilters([0]);
  const filters = { rows: async () => rows, extremes: async () => [], close: async () => undefined };
  await pushed.watching(filters).rows({ type: 'in', column: 0, values: [1] });
  return pushed;
}

test('a filter that Milvus can evaluate is sent to it, needs one search, and has the same hits', async () => {
  const rows = normalRows(20_000, 8, 4);
  const liveRows = randomBitmap(20_000, 0.9, 8);
  const filter = randomBitmap(20_000, 0.4, 9);
  const queries = normalRows(3, 8, 5).values;
  for (const metric of METRICS) {
    const pushed = await pushedFilter(filter);
    const passes = (_: string, row: number): boolean => filter.has(row);
    const { index, fake } = indexOf(rows, metric, { liveRows, pushed, passes, wrong: 0.01 });
    for (const k of [1, 100, 3_000]) {
      const asked = { queries, k, filter };
      const found = await index.search({ ...asked, count: 3 });
      assert.deepEqual(listsOf(found, k), expected(rows, metric, { ...asked, filter: filter.intersection(liveRows) }));
    }
    assert.ok(fake.asked.every(({ condition }) => condition.type === 'filter'));
    assert.equal(fake.counted.length, 1, 'a filter is counted once');
    assert.deepEqual(fake.counted[0], {
      type: 'filter',
      expression: 'column_0 in [4607182418800017408]',
      first: 0,
      end: 20_000,
    });
  }
});

test('a filter by which Milvus lets other rows pass is refused, whether a row is missing or too many', async () => {
  const rows = normalRows(5_000, 8, 4);
  const filter = randomBitmap(5_000, 0.4, 9);
  const [first] = filter;
  for (const [wrong, code] of [
    // Perhaps not loaded yet: the request can be sent again.
    [(row: number) => filter.has(row) && row !== first, 'STORE_FAILED'],
    [(row: number) => filter.has(row) || row < 9, 'STORE_DIFFERS'],
  ] as const) {
    const { index } = indexOf(rows, 'inner-product', {
      pushed: await pushedFilter(filter),
      passes: (_, row) => wrong(row),
    });
    const search = index.search({ queries: normalRows(1, 8, 5).values, count: 1, k: 5, filter });
    await assert.rejects(search, trawlError(code, /rows pass a filter/));
  }
});

test('a store that takes sets of rows gets the rows that pass a filter, and is asked once', async () => {
  const rows = normalRows(12_000, 8, 1);
  const filter = randomBitmap(12_000, 0.5, 2);
  const queries = normalRows(1, 8, 9).values;
  const { fake, index } = indexOf(rows, 'inner-product', { takesBitmaps: true, wrong: 0 });
  await assertSame(index, rows, 'inner-product', { queries, k: 20, filter });
  assert.deepEqual(
    fake.asked.map(({ condition: { type }, limit }) => [type, limit]),
    [['bitmap', 52]],
  );
  const damage = (found: Candidates): Candidates => ({ ...found, total: filter.count() - 1 });
  const damaged = indexOf(rows, 'inner-product', { takesBitmaps: true, wrong: 0, damage }).index;
  const search = damaged.search({ queries, count: 1, k: 20, filter });
  await assert.rejects(search, trawlError('STORE_FAILED', /candidates of/), 'a list among another number of rows');
});
