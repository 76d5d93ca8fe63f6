import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, renameSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { availableCores } from '../../../src/base/system/cores.ts';
import { METRICS, type Metric } from '../../../src/engine/metric.ts';
import { type Kernel, loadKernel, makeKernel } from '../../../src/engine/native/kernel.ts';
import { ADDON_PATH, type Addon } from '../../../src/engine/native/load-addon.ts';
import { RowBitmap } from '../../../src/engine/row-bitmap.ts';
import { CodesWriter } from '../../../src/engine/vectors/codes-writer.ts';
import { type FlatIndex, openFlatIndex } from '../../../src/engine/vectors/flat-index.ts';
import type { IndexSource } from '../../../src/engine/vectors/vector-index.ts';
import { runModule } from '../../helpers/run-module.ts';
import { runs } from '../../helpers/runs.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import {
  expectedHits,
  hitsOf,
  normalRows,
  type Rows,
  ternaryRows,
  writeSource,
  writeUnchecked,
} from './index-files.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
const kernel = (loaded.ok ? loaded.kernel : undefined) as Kernel;

/** The rows of each shard with their codes beside them. */
async function withCodes(folder: string, source: IndexSource, rows: Rows): Promise<IndexSource> {
  const shards = await Promise.all(
    source.shards.map(async (shard, i) => {
      const codes = join(folder, `codes-${i}.i8`);
      const writer = new CodesWriter(codes, source, kernel);
      await writer.append(
        rows.values.subarray(shard.firstRow * rows.dimension, (shard.firstRow + shard.rows) * rows.dimension),
      );
      await writer.finish();
      return { ...shard, codes };
    }),
  );
  return { ...source, shards };
}

/** Makes a prefilter of the codes of each shard. */
async function withPrefilters(folder: string, source: IndexSource, components: number): Promise<IndexSource> {
  const shards = await Promise.all(
    source.shards.map(async (shard, i) => {
      const prefilter = join(folder, `prefilter-${i}.i8`);
      const { rows, segments, codes } = shard;
      const native = { rows, segments, dtype: 'float32' as const };
      const made = await kernel.makePrefilter(prefilter, codes!, native, source.dimension, components);
      assert.deepEqual(made, { components, reason: 'set by the caller' });
      return { ...shard, prefilter };
    }),
  );
  return { ...source, shards };
}

async function openNative(
  t: TestContext,
  rows: Rows,
  options: { metric?: Metric; shards?: number; liveRows?: RowBitmap; codes?: boolean; components?: number } = {},
): Promise<{ index: FlatIndex; source: IndexSource; folder: string }> {
  const folder = await tempFolder(t);
  const plain = await writeSource(folder, rows, options);
  const coded = options.codes === false ? plain : await withCodes(folder, plain, rows);
  const source = options.components === undefined ? coded : await withPrefilters(folder, coded, options.components);
  const index = await openFlatIndex(source, kernel);
  t.after(() => index.close());
  return { index, source, folder };
}

for (const metric of METRICS) {
  test(`${metric}: the native engine gives the reference's rows and bits`, { skip }, async (t) => {
    for (const [rows, queries] of [
      [normalRows(3_000, 48, 1), normalRows(17, 48, 2)],
      [ternaryRows(2_000, 5, 3), ternaryRows(9, 5, 4)],
    ] as const) {
      for (const shards of [1, 3]) {
        const { index } = await openNative(t, rows, { metric, shards });
        for (const k of [1, 10, 2_500]) {
          const found = await index.search({
            queries: queries.values,
            count: queries.values.length / rows.dimension,
            k,
          });
          assert.deepEqual(hitsOf(found), expectedHits(rows, queries, k, { metric }));
          assert.equal(found.exact, true);
        }
      }
    }
  });
}

/** Rows for which a prefilter is worthwhile, the same in every test. */
let manyRows: Rows | undefined;

for (const metric of METRICS) {
  test(`${metric}: through a prefilter, the same rows and bits, with and without a filter`, { skip }, async (t) => {
    manyRows ??= fewComponents(20_000, 192, 21);
    const rows = manyRows;
    const queries = { values: fewComponents(70, 192, 22).values.slice(0, 70 * 192), dimension: 192 };
    const { index, source } = await openNative(t, rows, { metric, components: 64 });
    const without = await openFlatIndex(
      { ...source, shards: source.shards.map(({ prefilter: _, ...shard }) => shard) },
      kernel,
    );
    t.after(() => without.close());
    assert.ok(index.residentBytes < without.residentBytes / 2);
    assert.equal(index.touchedBytes, without.residentBytes);
    for (const filter of [undefined, bitmapOf(20_000, 23, 0.3)]) {
      for (const [count, k] of [
        [1, 10],
        [70, 10],
        [9, 200],
      ] as const) {
        const request = { queries: queries.values.subarray(0, count * 192), count, k, ...(filter && { filter }) };
        assert.deepEqual(hitsOf(await index.search(request)), hitsOf(await without.search(request)));
      }
    }
    const few = { values: queries.values.subarray(0, 3 * 192), dimension: 192 };
    const found = await index.search({ queries: few.values, count: 3, k: 10 });
    assert.deepEqual(hitsOf(found), expectedHits(rows, few, 10, { metric }));
  });
}

test('a prefilter of other codes and a damaged one are refused by name, and verifying finds a changed byte', {
  skip,
}, async (t) => {
  const rows = fewComponents(2_000, 64, 24);
  const { source } = await openNative(t, rows, { components: 64 });
  const other = await openNative(t, fewComponents(2_000, 64, 25), { components: 64 });
  const [shard] = source.shards;
  const [stranger] = other.source.shards;
  await assert.rejects(
    () => openFlatIndex({ ...source, shards: [{ ...shard!, prefilter: stranger!.prefilter! }] }, kernel),
    trawlError('INDEX_FILE_FOREIGN', /prefilter was made for other codes/),
  );
  await assert.rejects(
    () => openFlatIndex({ ...source, shards: [{ ...shard!, prefilter: shard!.codes! }] }, kernel),
    trawlError('INDEX_FILE_FOREIGN', /not a prefilter file/),
  );
  const spec = { rows: 2_000, segments: shard!.segments, dtype: 'float32' as const };
  const verify = () => kernel.verifyPrefilter(shard!.prefilter!, shard!.codes!, spec, 64);
  assert.equal((await verify()).badRow, -1);
  const bytes = readFileSync(shard!.prefilter!);
  bytes[20_480 + 37 * 64 + 3]! ^= 0x20;
  writeFileSync(`${shard!.prefilter}.new`, bytes);
  renameSync(`${shard!.prefilter}.new`, shard!.prefilter!);
  const checked = await verify();
  assert.ok(checked.badRow >= 0, 'the row is reported');
  assert.notEqual(checked.reason, '');
});

test('a prefilter is made only if it is worthwhile, and the reason is returned', { skip }, async (t) => {
  const choose = async (rows: Rows) => {
    const { source, folder } = await openNative(t, rows);
    const [shard] = source.shards;
    const spec = { rows: shard!.rows, segments: shard!.segments, dtype: 'float32' as const };
    return kernel.makePrefilter(join(folder, 'prefilter.i8'), shard!.codes!, spec, rows.dimension, 0);
  };
  assert.deepEqual(await choose(normalRows(100, 256, 26)), {
    components: 0,
    reason: '100 rows are too few: a prefilter would not be worthwhile',
  });
  const made = await choose(fewComponents(20_000, 192, 27));
  assert.ok(made.components >= 64, made.reason);
  assert.match(made.reason, /principal components would keep about .* % of the cost of a pass over the codes/);
});

test('any shape, metric, shard count, live rows and filter give the reference answer', { skip }, async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        count: fc.integer({ min: 0, max: 300 }),
        dimension: fc.integer({ min: 1, max: 130 }),
        queryCount: fc.integer({ min: 0, max: 40 }),
        k: fc.integer({ min: 1, max: 320 }),
        shards: fc.integer({ min: 1, max: 5 }),
        metric: fc.constantFrom(...METRICS),
        ternary: fc.boolean(),
        live: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
        share: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
        codes: fc.boolean(),
        seed: fc.nat(),
      }),
      async ({ count, dimension, queryCount, k, shards, metric, ternary, live, share, codes, seed }) => {
        const make = ternary ? ternaryRows : normalRows;
        const rows = make(count, dimension, seed);
        const queries = make(queryCount, dimension, seed + 1);
        const liveRows = live === undefined ? undefined : bitmapOf(count, seed + 3, live);
        const { index } = await openNative(t, rows, { metric, shards, codes, ...(liveRows && { liveRows }) });
        const filter = share === undefined ? undefined : bitmapOf(count, seed + 2, share);
        const candidates =
          liveRows === undefined ? filter : filter === undefined ? liveRows : filter.intersection(liveRows);
        const found = await index.search({
          queries: queries.values,
          count: queryCount,
          k,
          filter,
        });
        assert.deepEqual(
          hitsOf(found),
          expectedHits(rows, queries, k, { metric, ...(candidates && { filter: candidates }) }),
        );
        await index.close();
      },
    ),
    { numRuns: runs(25, 60) },
  );
});

test('a query has the same bits alone and in a batch, with one thread and with four', { skip }, async (t) => {
  const rows = normalRows(5_000, 96, 5);
  const queries = normalRows(64, 96, 6);
  const { index } = await openNative(t, rows, { shards: 2 });
  t.after(() => kernel.setThreads(availableCores()));
  const together = hitsOf(await index.search({ queries: queries.values, count: 64, k: 20 }));
  for (const threads of [1, 4]) {
    kernel.setThreads(threads);
    for (const q of [0, 31, 63]) {
      const alone = await index.search({ queries: queries.values.subarray(q * 96, (q + 1) * 96), count: 1, k: 20 });
      assert.deepEqual(hitsOf(alone)[0], together[q]);
    }
  }
});

test('with codes, few rows need an exact score', { skip }, async (t) => {
  const rows = normalRows(20_000, 64, 7);
  const { index } = await openNative(t, rows);
  const { certificate } = await index.search({ queries: rows.values.subarray(0, 64 * 50), count: 50, k: 10 });
  assert.equal(certificate!.fullScans, 0);
  assert.ok(Math.max(...certificate!.rescored) < 2_000, `at most ${Math.max(...certificate!.rescored)} of 20,000`);
  assert.ok(index.residentBytes < 20_000 * 64 * 2, 'the codes are far smaller than the vectors');
});

test('deleted rows are never found, and no search copies or combines bitmaps on the event loop', {
  skip,
}, async (t) => {
  const rows = normalRows(500, 16, 8);
  const liveRows = bitmapOf(500, 9, 0.5);
  const folder = await tempFolder(t);
  const source = await withCodes(folder, await writeSource(folder, rows, { liveRows, shards: 3 }), rows);
  const calls: { name: string; args: unknown[] }[] = [];
  const addon = createRequire(import.meta.url)(ADDON_PATH) as Addon;
  const recorded = Object.fromEntries(
    Object.entries(addon).map(([name, call]: [string, (...args: unknown[]) => unknown]) => [
      name,
      (...args: unknown[]) => {
        calls.push({ name, args });
        return call(...args);
      },
    ]),
  ) as unknown as Addon;
  const index = await openFlatIndex(source, makeKernel(recorded));
  t.after(() => index.close());
  const filter = bitmapOf(500, 10, 0.5);
  for (const request of [{}, {}, { filter }]) {
    const found = await index.search({ queries: rows.values, count: 500, k: 500, ...request });
    for (const row of found.rows) assert.ok(row === -1 || liveRows.has(row));
  }
  const argsOf = (name: string) => calls.filter((call) => call.name === name).map(({ args }) => args);
  assert.equal(argsOf('openIndex').length, 1);
  assert.equal((argsOf('openIndex')[0]![1] as { liveRows: unknown }).liveRows, liveRows.bytes);
  const filters = argsOf('search').map((args) => (args[2] as { filter: unknown }).filter);
  assert.equal(filters.length, 3);
  assert.deepEqual(filters.slice(0, 2), [undefined, undefined]);
  assert.equal(filters[2], filter.bytes);
});

test('NaN and infinity are refused with their place, in queries and in rows', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const rows = normalRows(100, 8, 10);
  const { index } = await openNative(t, rows);
  const query = Float32Array.from({ length: 16 }, (_, i) => (i === 11 ? Number.POSITIVE_INFINITY : 1));
  await assert.rejects(
    index.search({ queries: query, count: 2, k: 3 }),
    trawlError('NON_FINITE_QUERY', /Query 1 .* column 3/),
  );
  rows.values[42 * 8 + 5] = Number.NaN;
  const writer = new CodesWriter(join(folder, 'codes.i8'), { metric: 'inner-product', dimension: 8 }, kernel);
  await assert.rejects(writer.append(rows.values), trawlError('NON_FINITE_VECTOR', /row 42.*column 5/i));
  writer.abandon();
  const unchecked = await openFlatIndex(await writeUnchecked(folder, rows), kernel);
  t.after(() => unchecked.close());
  const search = unchecked.search({ queries: new Float32Array(8).fill(1), count: 1, k: 3 });
  await assert.rejects(search, trawlError('NON_FINITE_VECTOR', /42/));
});

test('an abort ends running and waiting searches', { skip }, async (t) => {
  const rows = normalRows(60_000, 64, 11);
  const { index } = await openNative(t, rows, { codes: false });
  const abort = new AbortController();
  const searches = Array.from({ length: 20 }, () =>
    index.search({ queries: rows.values.subarray(0, 64 * 400), count: 400, k: 10, signal: abort.signal }),
  );
  // At once, so that no search has ended, however fast the machine is.
  setImmediate(() => abort.abort());
  for (const outcome of await Promise.allSettled(searches)) {
    assert.ok(outcome.status === 'rejected');
    assert.ok(trawlError('CANCELLED')(outcome.reason));
  }
  const after = await index.search({ queries: rows.values.subarray(0, 64), count: 1, k: 1 });
  assert.equal(after.rows[0], 0);
  await assert.rejects(
    index.search({ queries: rows.values.subarray(0, 64), count: 1, k: 1, signal: AbortSignal.abort() }),
    trawlError('CANCELLED'),
  );
});

test('many searches at once get their own answers', { skip }, async (t) => {
  const rows = normalRows(4_000, 32, 12);
  const { index } = await openNative(t, rows);
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, q) =>
      index.search({ queries: rows.values.slice(q * 32, (q + 1) * 32), count: 1, k: 3 }),
    ),
  );
  const expected = expectedHits(rows, { values: rows.values.subarray(0, 200 * 32), dimension: 32 }, 3);
  assert.deepEqual(
    answers.map((answer) => hitsOf(answer)[0]),
    expected,
  );
});

test('close waits for running searches and refuses later ones', { skip }, async (t) => {
  const rows = normalRows(20_000, 64, 13);
  const { index } = await openNative(t, rows, { codes: false });
  const running = index.search({ queries: rows.values.subarray(0, 64 * 100), count: 100, k: 5 });
  const closing = index.close();
  await assert.rejects(index.search({ queries: rows.values.subarray(0, 64), count: 1, k: 1 }), trawlError('NOT_READY'));
  assert.equal((await running).rows[0]! >= 0, true);
  await closing;
  await index.close();
});

test('codes of other rows, another metric, or damaged codes are refused by name', { skip }, async (t) => {
  const rows = normalRows(300, 16, 14);
  const { source, folder } = await openNative(t, rows);
  const [shard] = source.shards;
  const codes = shard!.codes!;
  const reopen = (changed: Partial<IndexSource>): Promise<FlatIndex> =>
    openFlatIndex({ ...source, ...changed }, kernel);
  await assert.rejects(() => reopen({ metric: 'l2' }), trawlError('INDEX_FILE_FOREIGN', /codes|metric/));
  const fewer = { ...shard!, rows: 299, segments: [{ ...shard!.segments[0]!, bytes: 299 * 16 * 4 }] };
  await assert.rejects(() => reopen({ rows: 299, shards: [fewer] }), trawlError('INDEX_FILE_FOREIGN', /299|300/));
  const copy = join(folder, 'copy.i8');
  for (const damage of [
    () => truncateSync(copy, 100),
    () => truncateSync(copy, readFileSync(copy).length - 1),
    () => writeFileSync(copy, readFileSync(copy).fill(0, 0, 8)),
    () => writeFileSync(copy, ''),
  ]) {
    copyFileSync(codes, copy);
    damage();
    await assert.rejects(
      () => reopen({ shards: [{ ...shard!, codes: copy }] }),
      trawlError('INDEX_FILE_FOREIGN', /copy\.i8/),
    );
  }
  unlinkSync(copy);
  await assert.rejects(
    () => reopen({ shards: [{ ...shard!, codes: copy }] }),
    trawlError('INDEX_FILE_MISSING', /copy\.i8/),
  );
});

test('verifying codes finds a changed byte', { skip }, async (t) => {
  const rows = normalRows(100, 64, 15);
  const { source } = await openNative(t, rows);
  const { codes, segments } = source.shards[0]!;
  const spec = { rows: 100, dtype: 'float32', segments } as const;
  assert.equal((await kernel.verifyCodes(codes!, spec, 64)).badRow, -1);
  const bytes = readFileSync(codes!);
  bytes[4096 + 37 * 64 + 3]! ^= 0x20;
  writeFileSync(`${codes}.new`, bytes);
  renameSync(`${codes}.new`, codes!);
  const checked = await kernel.verifyCodes(codes!, spec, 64);
  assert.ok(checked.badRow >= 0, 'the row is reported');
  assert.notEqual(checked.reason, '');
});

test('an instruction set that the machine lacks is refused with the list of available ones', { skip }, () => {
  const { status, stderr } = runModule(`
    process.env.TRAWL_ISA = 'mmx';
    const { loadKernel } = await import('#root/src/engine/native/kernel.js');
    try { loadKernel(); } catch (error) { process.stderr.write(error.code + ' ' + error.message); process.exit(3); }
  `);
  assert.equal(status, 3);
  assert.match(stderr, /CONFIG_INVALID .*mmx.*serial/s);
});

test('every instruction set of this machine gives the same bits', { skip }, () => {
  const available = kernel
    .isas()
    .filter((isa) => isa.available)
    .map(({ name }) => name);
  const outputs = [...available, 'reference'].map((isa) => {
    const { status, stdout, stderr } = runModule(`
      process.env.TRAWL_ISA = '${isa}';
      const { writeSource, normalRows, ternaryRows } = await import('#root/test/engine/vectors/index-files.js');
      const { openEngine } = await import('#root/src/engine/vectors/open-engine.js');
      const { loadKernel } = await import('#root/src/engine/native/kernel.js');
      const { CodesWriter } = await import('#root/src/engine/vectors/codes-writer.js');
      const { mkdtempSync, rmSync } = await import('node:fs');
      const { createHash } = await import('node:crypto');
      const folder = mkdtempSync('/tmp/trawl-test-');
      const hash = createHash('sha256');
      for (const metric of ['inner-product', 'cosine', 'l2']) {
        for (const rows of [normalRows(2000, 70, 1), ternaryRows(1000, 9, 2)]) {
          const source = await writeSource(folder, rows, { metric });
          const codes = folder + '/codes.i8';
          if ('${isa}' !== 'reference') {
            const writer = new CodesWriter(codes, source, loadKernel().kernel);
            await writer.append(rows.values);
            await writer.finish();
            source.shards[0].codes = codes;
          }
          const index = await openEngine(source);
          const found = await index.search({ queries: rows.values.slice(0, rows.dimension * 33), count: 33, k: 12 });
          hash.update(new Uint8Array(found.rows.buffer)).update(new Uint8Array(found.scores.buffer));
          await index.close();
        }
      }
      rmSync(folder, { recursive: true });
      console.log(hash.digest('hex'));
    `);
    assert.equal(status, 0, `${isa}: ${stderr}`);
    return stdout;
  });
  assert.equal(new Set(outputs).size, 1, `${available.join(', ')} and the reference`);
});

test('the process ends cleanly whatever the engine is doing', { skip }, () => {
  const prepare = `
    const { writeSource, normalRows } = await import('#root/test/engine/vectors/index-files.js');
    const { openFlatIndex } = await import('#root/src/engine/vectors/flat-index.js');
    const { loadKernel } = await import('#root/src/engine/native/kernel.js');
    const { mkdtempSync, rmSync } = await import('node:fs');
    const folder = mkdtempSync('/tmp/trawl-test-');
    process.on('exit', () => rmSync(folder, { recursive: true }));
    const rows = normalRows(20000, 64, 1);
    const index = await openFlatIndex(await writeSource(folder, rows), loadKernel().kernel);
    const search = () => index.search({ queries: rows.values.slice(0, 64 * 500), count: 500, k: 10 });
  `;
  for (const ending of [
    '',
    'search().catch(() => undefined); process.exit(0);',
    'search().catch(() => undefined); setTimeout(() => process.exit(0), 20);',
    'await search(); await index.close();',
    'await search();',
    `const { Worker } = await import('node:worker_threads');
     const worker = new Worker(new URL('#root/src/engine/native/kernel.js'));
     await new Promise((resolve) => worker.once('exit', resolve));`,
  ]) {
    const { status, stderr } = runModule(`${prepare}${ending}`);
    assert.equal(status, 0, `${ending}: ${stderr}`);
  }
});

/** Unit rows near a subspace of 24 dimensions. Vectors of encoders, too, are near a subspace of few dimensions. */
function fewComponents(count: number, dimension: number, seed: number): Rows {
  const components = normalRows(24, dimension, 4711).values;
  const weights = normalRows(count, 24, seed).values;
  const { values } = normalRows(count, dimension, seed + 1);
  for (let row = 0; row < count; row++) {
    let square = 0;
    for (let j = 0; j < dimension; j++) {
      let value = 0.02 * values[row * dimension + j]! + Math.sin(j);
      for (let i = 0; i < 24; i++) value += (weights[row * 24 + i]! * components[i * dimension + j]!) / (1 + 0.1 * i);
      values[row * dimension + j] = value;
      square += value * value;
    }
    for (let j = 0; j < dimension; j++) values[row * dimension + j]! /= Math.sqrt(square);
  }
  return { values, dimension };
}

function bitmapOf(rows: number, seed: number, share: number): RowBitmap {
  const random = seededRandom(seed);
  const bitmap = new RowBitmap(rows);
  for (let row = 0; row < rows; row++) if (random() < share) bitmap.add(row);
  return bitmap;
}
