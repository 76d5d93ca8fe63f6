import assert from 'node:assert/strict';
import { rmSync, truncateSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { METRICS } from '../../../src/engine/metric.ts';
import { openReferenceIndex } from '../../../src/engine/reference/reference-index.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { checkScoresFit } from '../../../src/engine/vectors/search-checks.ts';
import type { IndexSource, VectorIndex } from '../../../src/engine/vectors/vector-index.ts';
import { runModule } from '../../helpers/run-module.ts';
import { MANY, runs } from '../../helpers/runs.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import {
  expectedHits,
  hitsOf,
  normalRows,
  openForTest,
  type Rows,
  ternaryRows,
  writeSource,
  writeUnchecked,
} from '../vectors/index-files.ts';

function request({ values, dimension }: Rows, k: number): { queries: Float32Array; count: number; k: number } {
  return { queries: values, count: values.length / dimension, k };
}

function bitmapOf(rows: number, seed: number, share: number): RowBitmap {
  const random = seededRandom(seed);
  const bitmap = new RowBitmap(rows);
  for (let row = 0; row < rows; row++) if (random() < share) bitmap.add(row);
  return bitmap;
}

function both(a: RowBitmap, b: RowBitmap): RowBitmap {
  return new RowBitmap(
    a.rows,
    a.bytes.map((byte, i) => byte & b.bytes[i]!),
  );
}

/** A search that takes some tenths of a second. */
async function slowIndex(folder: string): Promise<{ source: IndexSource; queries: Rows }> {
  return { source: await writeSource(folder, normalRows(20_000, 32, 1)), queries: normalRows(300, 32, 2) };
}

/** Numbers of shards, each with numbers of threads. */
type Shapes = readonly (readonly [shards: number, ...threads: readonly number[]])[];
const ALL_SHAPES: Shapes = [1, 2, 5].map((shards) => [shards, 1, 2, 3, 4]);
const SOME_SHAPES: Shapes = [
  [1, 1, 4],
  [2, 3],
  [5, 2],
];

for (const metric of METRICS) {
  test(`${metric}: any number of threads and shards gives the reference answer bit for bit`, async (t) => {
    const folder = await tempFolder(t);
    const rows = ternaryRows(4200, 6, 11);
    const queries = normalRows(9, 6, 12);
    queries.values.fill(0, 0, 6);
    queries.values.set(rows.values.subarray(600, 606), 6);
    const expected = new Map([1, 7, 4300].map((k) => [k, expectedHits(rows, queries, k, { metric })]));
    for (const [shards, ...threadCounts] of MANY ? ALL_SHAPES : SOME_SHAPES) {
      const source = await writeSource(folder, rows, { metric, shards });
      for (const threads of threadCounts) {
        const index = await openForTest(t, source, threads);
        for (const [k, hits] of expected) {
          const result = await index.search(request(queries, k));
          assert.deepEqual(hitsOf(result), hits, `${shards}/${threads}/${k}`);
          assert.equal(result.exact, true);
        }
        await index.close();
      }
    }
  });
}

test('the same query gives the same bits in any batch, with any threads and shards', async (t) => {
  const folder = await tempFolder(t);
  const rows = normalRows(4200, 5, 21);
  const queries = normalRows(150, 5, 22);
  const sources = await Promise.all([1, 3].map((shards) => writeSource(folder, rows, { metric: 'cosine', shards })));
  const indexes = await Promise.all(
    sources.flatMap((source) => [1, 2, 4].map((threads) => openForTest(t, source, threads))),
  );
  const alone = await indexes[0]!.search(request(queries, 5));
  const batches = fc.array(fc.nat(149), { minLength: 1, maxLength: 140 });
  await fc.assert(
    fc.asyncProperty(batches, fc.constantFrom(...indexes), async (batch, index) => {
      const values = Float32Array.from(batch.flatMap((q) => [...queries.values.subarray(q * 5, q * 5 + 5)]));
      const result = await index.search({ queries: values, count: batch.length, k: 5 });
      for (const [i, q] of batch.entries()) {
        assert.deepEqual(result.rows.slice(i * 5, i * 5 + 5), alone.rows.slice(q * 5, q * 5 + 5));
        assert.deepEqual(result.scores.slice(i * 5, i * 5 + 5), alone.scores.slice(q * 5, q * 5 + 5));
      }
    }),
    { numRuns: runs(15, 40) },
  );
});

test('an index larger than a block of rows is searched completely', async (t) => {
  // 4 MiB hold 1,024 rows of 1,024 dimensions: one thread reads three blocks, the last not full.
  const rows = normalRows(2500, 1024, 31);
  const queries = { values: rows.values.slice(2499 * 1024), dimension: 1024 };
  const index = await openForTest(t, await writeSource(await tempFolder(t), rows, { shards: 2 }), 1);
  const result = await index.search(request(queries, 20));
  assert.deepEqual(hitsOf(result), expectedHits(rows, queries, 20));
  assert.equal(result.rows[0], 2499);
});

test('equal rows are ordered by row number, across shards and threads', async (t) => {
  const rows = { values: new Float32Array(3000 * 2).fill(1), dimension: 2 };
  const index = await openForTest(t, await writeSource(await tempFolder(t), rows, { shards: 4 }), 3);
  const result = await index.search(request({ values: Float32Array.of(1, 2), dimension: 2 }, 2000));
  assert.deepEqual(
    [...result.rows],
    Array.from({ length: 2000 }, (_, row) => row),
  );
});

test('with k above the number of rows all rows are returned, then −1', async (t) => {
  const rows = { values: Float32Array.of(1, 2, 3), dimension: 1 };
  const index = await openForTest(t, await writeSource(await tempFolder(t), rows), 2);
  const result = await index.search({ queries: Float32Array.of(1, -1), count: 2, k: 5 });
  assert.deepEqual([...result.counts], [3, 3]);
  assert.deepEqual([...result.rows], [2, 1, 0, -1, -1, 0, 1, 2, -1, -1]);
  assert.deepEqual([...result.scores.subarray(0, 3)], [3, 2, 1]);
});

test('only live rows of the filter are found', async (t) => {
  const folder = await tempFolder(t);
  const rows = ternaryRows(3100, 4, 41);
  const queries = normalRows(3, 4, 42);
  const liveRows = bitmapOf(3100, 43, 0.7);
  const filter = bitmapOf(3100, 44, 0.1);
  const whole = await openForTest(t, await writeSource(folder, rows, { shards: 3 }), 2);
  const withDeleted = await openForTest(t, await writeSource(folder, rows, { shards: 3, liveRows }), 2);
  const k = 600;
  const search = async (index: VectorIndex, bitmap?: RowBitmap): Promise<unknown> =>
    hitsOf(await index.search({ ...request(queries, k), filter: bitmap }));
  assert.deepEqual(await search(whole, filter), expectedHits(rows, queries, k, { filter }));
  assert.deepEqual(await search(withDeleted), expectedHits(rows, queries, k, { filter: liveRows }));
  assert.deepEqual(
    await search(withDeleted, filter),
    expectedHits(rows, queries, k, { filter: both(liveRows, filter) }),
  );
  assert.deepEqual(await search(whole, new RowBitmap(3100)), Array(3).fill({ rows: [], scores: [] }));
  assert.equal(withDeleted.rows, 3100, 'deleted rows keep their numbers');
});

test('a filter for another number of rows is refused', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(20, 2, 1)));
  const queries = normalRows(1, 2, 2);
  for (const rows of [12, 19, 21, 24]) {
    await assert.rejects(
      index.search({ ...request(queries, 1), filter: new RowBitmap(rows) }),
      new RegExp(`covers ${rows} rows, the index has 20`),
    );
  }
  assert.equal((await index.search(request(queries, 1))).counts[0], 1, 'the index still answers');
});

test('a filter and queries may be changed as soon as the search is called', async (t) => {
  const rows = normalRows(50, 3, 1);
  const index = await openForTest(t, await writeSource(await tempFolder(t), rows));
  const queries = normalRows(2, 3, 2);
  const filter = bitmapOf(50, 3, 0.5);
  const expected = expectedHits(rows, queries, 5, { filter });
  const running = index.search({ ...request(queries, 5), filter });
  queries.values.fill(7);
  filter.bytes.fill(0);
  assert.deepEqual(hitsOf(await running), expected);
});

test('an index without rows has no hits', async (t) => {
  const folder = await tempFolder(t);
  for (const source of [
    await writeSource(folder, { values: new Float32Array(0), dimension: 3 }),
    { dimension: 3, metric: 'l2', rows: 0, shards: [] } satisfies IndexSource,
  ]) {
    const index = await openForTest(t, source, 4);
    const result = await index.search(request(normalRows(2, 3, 1), 4));
    assert.deepEqual([...result.counts], [0, 0]);
    assert.deepEqual([...result.rows], Array(8).fill(-1));
  }
});

test('an empty shard does not change the row numbers of later shards', async (t) => {
  const rows = normalRows(3, 2, 9);
  const source = await writeSource(await tempFolder(t), rows, { shards: 5 });
  assert.ok(source.shards.some((shard) => shard.rows === 0));
  const queries = normalRows(2, 2, 8);
  const index = await openForTest(t, source, 2);
  assert.deepEqual(hitsOf(await index.search(request(queries, 3))), expectedHits(rows, queries, 3));
});

test('a search without queries has an empty result', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 2, 1)));
  const result = await index.search({ queries: new Float32Array(0), count: 0, k: 3 });
  assert.deepEqual([result.counts.length, result.rows.length, result.scores.length], [0, 0, 0]);
});

test('float16 rows have the scores of the equal float32 rows', async (t) => {
  const folder = await tempFolder(t);
  const halves = Uint16Array.of(0x3c00, 0xc000, 0x3800, 0x7bff, 0x0001, 0x4200);
  const path = join(folder, 'vectors.f16');
  await writeFile(path, new Uint8Array(halves.buffer));
  const segments = [{ path, offset: 0, bytes: 12, dtype: 'float16' as const }];
  const source: IndexSource = { dimension: 2, metric: 'l2', rows: 3, shards: [{ firstRow: 0, rows: 3, segments }] };
  const rows = { values: Float32Array.of(1, -2, 0.5, 65_504, 2 ** -24, 3), dimension: 2 };
  const queries = normalRows(4, 2, 3);
  const index = await openForTest(t, source);
  assert.deepEqual(hitsOf(await index.search(request(queries, 3))), expectedHits(rows, queries, 3, { metric: 'l2' }));
});

test('a query that is not finite is refused with query and column before the scan', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 3, 1)));
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    const queries = new Float32Array(9);
    queries[5] = bad;
    await assert.rejects(index.search({ queries, count: 3, k: 1 }), (error: Error & { details?: unknown }) => {
      assert.deepEqual(error.details, { query: 1, column: 2 });
      return trawlError('NON_FINITE_QUERY', new RegExp(`Query 1 has ${bad} in column 2`))(error);
    });
  }
});

test('a stored row that is not finite is refused with its row number and column', async (t) => {
  for (const [metric, bad] of [
    ['inner-product', Number.NaN],
    ['l2', Number.NEGATIVE_INFINITY],
    ['cosine', Number.POSITIVE_INFINITY],
  ] as const) {
    const rows = normalRows(2100, 3, 1);
    rows.values[2050 * 3 + 2] = bad;
    const index = await openForTest(t, { ...(await writeUnchecked(await tempFolder(t), rows)), metric }, 2);
    await assert.rejects(index.search(request(normalRows(1, 3, 2), 4)), (error: Error & { details?: unknown }) => {
      assert.deepEqual(error.details, { row: 2050, column: 2 });
      return trawlError('NON_FINITE_VECTOR', /Row 2050 has .* in column 2/)(error);
    });
    const filter = new RowBitmap(2100);
    filter.add(3);
    const result = await index.search({ ...request(normalRows(1, 3, 2), 4), filter });
    assert.deepEqual([...result.rows], [3, -1, -1, -1], 'a row outside the filter is not scored');
  }
});

test('a query with a score beyond float32 has no hits and is named; the others have theirs, the largest float32 among them', async (t) => {
  const rows = { values: Float32Array.of(1, 1, 3e38, 3e38), dimension: 2 };
  const index = await openForTest(t, await writeSource(await tempFolder(t), rows));
  const fits = await index.search({ queries: Float32Array.of(0.5, 0.5), count: 1, k: 1 });
  assert.equal(fits.rows[0], 1);
  const queries = Float32Array.of(0.5, 0.5, 1, 1);
  const found = await index.search({ queries, count: 2, k: 1 });
  assert.deepEqual([...found.counts], [1, 0]);
  assert.deepEqual(found.overflows, new Map([[1, 1]]));
  assert.throws(
    () => checkScoresFit(found),
    (error: Error & { details?: unknown }) => {
      assert.deepEqual(error.details, { query: 1 });
      return trawlError('SCORE_OVERFLOW', /query 1 and row 1 does not fit float32/)(error);
    },
  );
  const worst = await index.search({ queries: Float32Array.of(-1, -1), count: 1, k: 1 });
  assert.deepEqual([worst.rows[0], worst.scores[0]], [0, -2], 'only returned scores have to fit');
});

test('queries of another length than count × dimension are refused', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 3, 1)));
  for (const [length, count] of [
    [4, 1],
    [3, 2],
    [0, 1],
    [3, 0],
  ] as const) {
    await assert.rejects(
      index.search({ queries: new Float32Array(length), count, k: 1 }),
      trawlError('DIMENSION_MISMATCH', new RegExp(`${count} queries of 3 .* but ${length} were given`)),
    );
  }
});

test('a k or count out of range is refused', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 2, 1)));
  for (const k of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    await assert.rejects(index.search({ queries: new Float32Array(2), count: 1, k }), RangeError);
  }
  await assert.rejects(index.search({ queries: new Float32Array(1), count: 0.5, k: 1 }), RangeError);
});

test('an invalid number of threads is refused', async (t) => {
  const source = await writeSource(await tempFolder(t), normalRows(5, 2, 1));
  for (const threads of [0, -1, 1.5, Number.NaN]) {
    await assert.rejects(openReferenceIndex(source, { threads }), /threads is .*whole number from 1/);
  }
});

test('a missing or short file is refused by name when the index opens', async (t) => {
  const folder = await tempFolder(t);
  const source = await writeSource(folder, normalRows(10, 4, 1), { shards: 2 });
  truncateSync(source.shards[1]!.segments[0]!.path, 100);
  await assert.rejects(openReferenceIndex(source), trawlError('INDEX_FILE_TRUNCATED', /vectors-1-of-2\.faiss/));
  rmSync(source.shards[0]!.segments[0]!.path);
  await assert.rejects(openReferenceIndex(source), trawlError('INDEX_FILE_MISSING', /vectors-0-of-2\.faiss/));
});

test('a file that is truncated while the index is open fails the search by name and no other', async (t) => {
  const source = await writeSource(await tempFolder(t), normalRows(10, 4, 1));
  const index = await openForTest(t, source);
  truncateSync(source.shards[0]!.segments[0]!.path, 100);
  await assert.rejects(
    index.search(request(normalRows(1, 4, 2), 1)),
    trawlError('INDEX_FILE_TRUNCATED', /vectors-0-of-1/),
  );
  const none = await index.search({ queries: new Float32Array(0), count: 0, k: 1 });
  assert.equal(none.counts.length, 0);
});

test('concurrent searches get their own answers', async (t) => {
  const rows = normalRows(3000, 8, 51);
  const index = await openForTest(t, await writeSource(await tempFolder(t), rows, { shards: 2 }), 2);
  await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const queries = normalRows(1 + (i % 7), 8, 100 + i);
      const k = 1 + ((i * 13) % 50);
      assert.deepEqual(hitsOf(await index.search(request(queries, k))), expectedHits(rows, queries, k));
    }),
  );
});

test('a signal that is aborted beforehand stops the search', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 2, 1)));
  const signal = AbortSignal.abort();
  await assert.rejects(index.search({ ...request(normalRows(1, 2, 1), 1), signal }), trawlError('CANCELLED'));
});

test('aborting ends a running search, and the index answers the next', async (t) => {
  const { source, queries } = await slowIndex(await tempFolder(t));
  const index = await openForTest(t, source, 2);
  const controller = new AbortController();
  const running = index.search({ ...request(queries, 10), signal: controller.signal });
  setTimeout(() => controller.abort(), 5);
  await assert.rejects(running, trawlError('CANCELLED'));
  const one = { values: queries.values.subarray(0, 32), dimension: 32 };
  const next = await index.search(request(one, 3));
  assert.equal(next.counts[0], 3);
});

test('a search that waits for another is cancelled at once', async (t) => {
  const { source, queries } = await slowIndex(await tempFolder(t));
  const index = await openForTest(t, source, 1);
  const controller = new AbortController();
  const ended: string[] = [];
  const first = index.search(request(queries, 10)).then(() => ended.push('first'));
  const second = index
    .search({ ...request(queries, 10), signal: controller.signal })
    .catch((error: Error) => ended.push(`second ${trawlError('CANCELLED')(error)}`));
  controller.abort();
  await Promise.all([first, second]);
  assert.deepEqual(ended, ['second true', 'first']);
});

test('a signal that is aborted after the answer changes nothing', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 2, 1)));
  const controller = new AbortController();
  const search = request(normalRows(1, 2, 1), 2);
  const before = await index.search({ ...search, signal: controller.signal });
  controller.abort();
  assert.deepEqual(await index.search(search), before);
});

test('closing waits for running searches, and refuses later ones', async (t) => {
  const { source, queries } = await slowIndex(await tempFolder(t));
  const index = await openForTest(t, source, 2);
  const ended: string[] = [];
  const running = index.search(request(queries, 1)).then((result) => ended.push(`search ${result.counts.length}`));
  const closing = index.close().then(() => ended.push('close'));
  await assert.rejects(index.search(request(queries, 1)), trawlError('NOT_READY', /closed/));
  await Promise.all([running, closing]);
  assert.deepEqual(ended, ['search 300', 'close']);
  await index.close();
  await assert.rejects(index.search(request(queries, 1)), trawlError('NOT_READY'));
});

test('closing waits for a search whose answer arrives in the same event as the end of its thread', async (t) => {
  const threads: Worker[] = [];
  const onWorker = (worker: Worker): number => threads.push(worker);
  process.on('worker', onWorker);
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 2, 1)), 1);
  process.off('worker', onWorker);
  const [thread] = threads;
  // The answer arrives when the thread ends, or 100 ms late if the thread waits for the search.
  const [receive] = thread!.listeners('message') as [(message: unknown) => void];
  thread!.off('message', receive).on('message', (message) => {
    const deliver = (): void => {
      clearTimeout(timer);
      thread!.off('exit', deliver);
      receive(message);
    };
    const timer = setTimeout(deliver, 100);
    thread!.prependListener('exit', deliver);
  });
  const ended: string[] = [];
  const running = index.search(request(normalRows(1, 2, 1), 1)).then(() => ended.push('search'));
  const closing = index.close().then(() => ended.push('close'));
  await Promise.all([running, closing]);
  assert.deepEqual(ended, ['search', 'close']);
});

test('closing twice at the same time works', async (t) => {
  const index = await openForTest(t, await writeSource(await tempFolder(t), normalRows(5, 2, 1)), 2);
  await Promise.all([index.close(), index.close()]);
});

test('when a thread dies, running and later searches fail', async (t) => {
  const { source, queries } = await slowIndex(await tempFolder(t));
  const threads: Worker[] = [];
  const onWorker = (worker: Worker): number => threads.push(worker);
  process.on('worker', onWorker);
  const index = await openForTest(t, source, 2);
  process.off('worker', onWorker);
  assert.equal(threads.length, 2);
  const running = assert.rejects(
    index.search(request(queries, 1)),
    trawlError('INTERNAL', /thread has died.*Reload the index/),
  );
  await threads[1]!.terminate();
  await running;
  await assert.rejects(index.search(request(queries, 1)), trawlError('INTERNAL', /thread has died.*Reload the index/));
  await index.close();
});

test('a search or a close keeps the process alive, an open index does not', async (t) => {
  const source = await writeSource(await tempFolder(t), normalRows(3000, 32, 1));
  const { status, stdout, stderr } = runModule(`
    const { openReferenceIndex } = await import('#root/src/engine/reference/reference-index.js');
    const index = await openReferenceIndex(${JSON.stringify(source)}, { threads: 2 });
    const queries = new Float32Array(200 * 32).fill(1);
    const search = index.search({ queries, count: 200, k: 1 }).then(({ counts }) => console.log('found', counts.length));
    await index.close();
    console.log('closed');
    await search;
    const idle = await openReferenceIndex(${JSON.stringify(source)}, { threads: 2 });
    await idle.search({ queries: queries.subarray(0, 32), count: 1, k: 1 });
    console.log('idle');
  `);
  assert.deepEqual([status, stdout, stderr], [0, 'found 200\nclosed\nidle\n', '']);
});
