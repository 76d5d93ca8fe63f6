import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import { ColumnFile } from '../../../src/engine/columns/column-file.ts';
import { FilterCache } from '../../../src/engine/columns/filter-cache.ts';
import { openNativeRowFilters } from '../../../src/engine/columns/open-row-filters.ts';
import type { ColumnSource, RowFilters } from '../../../src/engine/columns/row-filters.ts';
import { bindFilter } from '../../../src/engine/filter/bind-filter.ts';
import type { Column } from '../../../src/engine/filter/column.ts';
import { parseFilterExpression } from '../../../src/engine/filter/filter-expression.ts';
import { type Kernel, loadKernel } from '../../../src/engine/native/kernel.ts';
import { referenceRowFilters } from '../../../src/engine/reference/reference-row-filters.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { arbitraryFilter, arbitraryRow, COLUMNS } from '../filter/arbitrary-filters.ts';
import { passes } from '../filter/naive-filter.ts';
import { writeColumns } from './column-files.ts';

const loaded = loadKernel();

/** The engines of this machine over the same files. */
async function engines(sources: readonly ColumnSource[], rows: number): Promise<RowFilters[]> {
  const reference = referenceRowFilters(sources, rows);
  return loaded.ok ? [reference, await openNativeRowFilters(sources, rows, loaded.kernel)] : [reference];
}

async function rowsOf(filters: RowFilters, columns: readonly Column[], expression: string): Promise<number[]> {
  const { test: bound } = bindFilter(parseFilterExpression(expression), columns, 'ix');
  return [...(await filters.rows(bound))];
}

test('the rows that pass are those of the naive evaluation, in any shards, with one value or several', async (t) => {
  const folder = await tempFolder(t);
  const table = fc.boolean().chain((multiple) => fc.array(arbitraryRow(multiple), { maxLength: 300, size: 'max' }));
  await fc.assert(
    fc.asyncProperty(
      table,
      fc.array(arbitraryFilter, { minLength: 1, maxLength: 8 }),
      fc.array(fc.nat(100), { maxLength: 3 }),
      async (rows, filters, cuts) => {
        const shardRows: number[] = [];
        let left = rows.length;
        for (const cut of cuts) {
          shardRows.push(Math.min(cut, left));
          left -= shardRows.at(-1)!;
        }
        const sources = await writeColumns(folder, rows, COLUMNS, [...shardRows, left]);
        for (const [e, engine] of (await engines(sources, rows.length)).entries()) {
          for (const filter of filters) {
            const found = await engine.rows(bindFilter(filter, COLUMNS, 'ix').test);
            const expected = rows.flatMap((row, i) => (passes(filter, row, COLUMNS) ? [i] : []));
            assert.deepEqual([...found], expected, `engine ${e}: ${JSON.stringify(filter)}`);
          }
          await engine.close();
        }
      },
    ),
    { numRuns: runs(20, 60) },
  );
});

test('every width of codes finds its texts, at 200, 300 and 70,000 different ones', async (t) => {
  const folder = await tempFolder(t);
  for (const distinct of [200, 255, 256, 300, 70_000]) {
    const rows = Array.from({ length: distinct }, (_, i) => ({ s: `t${String(i).padStart(6, '0')}` }));
    const sources = await writeColumns(folder, rows, [{ name: 's', type: 'string' }]);
    for (const engine of await engines(sources, distinct)) {
      const last = String(distinct - 1).padStart(6, '0');
      assert.deepEqual(await rowsOf(engine, sources, `s = 't${last}'`), [distinct - 1]);
      assert.deepEqual(await rowsOf(engine, sources, `s >= 't${last}'`), [distinct - 1]);
      assert.deepEqual(await rowsOf(engine, sources, `s in ('t000000', 't000003', 't${last}', 'none')`), [
        0,
        3,
        distinct - 1,
      ]);
      assert.equal((await rowsOf(engine, sources, 's exists')).length, distinct);
      assert.deepEqual(await rowsOf(engine, sources, "s < 't000002' or s = 'none'"), [0, 1]);
      await engine.close();
    }
  }
});

test('many numbers in a list are found as few are', async (t) => {
  const rows = Array.from({ length: 200_000 }, (_, i) => ({ n: i % 1_000 }));
  const sources = await writeColumns(await tempFolder(t), rows, [{ name: 'n', type: 'number' }], [131_073, 68_927]);
  for (const engine of await engines(sources, rows.length)) {
    const wanted = Array.from({ length: 40 }, (_, i) => 25 * i);
    const found = await rowsOf(engine, sources, `n in (${wanted.join(', ')})`);
    assert.deepEqual(
      found,
      rows.flatMap(({ n }, i) => (n % 25 === 0 ? [i] : [])),
    );
    await engine.close();
  }
});

test('a damaged file gives wrong rows or an error, but neither a crash nor a hang', async (t) => {
  const folder = await tempFolder(t);
  const row = arbitraryRow(true);
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 40 }),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 }),
      fc.option(fc.nat()),
      arbitraryFilter,
      async (rows, changes, cut, filter) => {
        const sources = await writeColumns(folder, rows, COLUMNS);
        for (const { paths } of sources) {
          const bytes = readFileSync(paths[0]!);
          for (const [at, value] of changes) bytes[at % bytes.length] = value;
          writeFileSync(paths[0]!, cut === null ? bytes : bytes.subarray(0, cut % (bytes.length + 1)));
        }
        try {
          for (const engine of await engines(sources, rows.length)) {
            await engine.rows(bindFilter(filter, COLUMNS, 'ix').test);
            await engine.close();
          }
        } catch (error) {
          const isRowMismatch = error instanceof RangeError;
          assert.ok(error instanceof TrawlError || isRowMismatch, String(error));
        }
      },
    ),
    { numRuns: runs(50, 150) },
  );
});

test('a filter in TypeScript of many short tests serves others between them, and can be cancelled', async (t) => {
  const rows = Array.from({ length: 4_096 }, (_, n) => ({ n }));
  const sources = await writeColumns(await tempFolder(t), rows, [{ name: 'n', type: 'number' }]);
  const filters = referenceRowFilters(sources, rows.length);
  t.after(() => filters.close());
  // Reads the file: from then on, a test waits for nothing.
  await rowsOf(filters, sources, 'n exists');
  const each = { type: 'exists', column: 0 } as const;
  const controller = new AbortController();
  const running = filters.rows({ type: 'or', tests: Array.from({ length: 4_000 }, () => each) }, controller.signal);
  setImmediate(() => controller.abort());
  await assert.rejects(running, trawlError('CANCELLED'));
});

test('a missing file, a foreign one and one of another version are named', async (t) => {
  const folder = await tempFolder(t);
  const [source] = await writeColumns(folder, [{ n: 1 }], [{ name: 'n', type: 'number' }]);
  const path = source!.paths[0]!;
  const use = async (): Promise<void> => {
    for (const engine of await engines([source!], 1)) await rowsOf(engine, [source!], 'n = 1');
  };
  const bytes = readFileSync(path);
  writeFileSync(path, 'x'.repeat(200));
  await assert.rejects(use, trawlError('INDEX_FILE_FOREIGN', /column-\d+\.bin: it is not a column file/));
  const newer = Buffer.from(bytes);
  newer[8] = 2;
  writeFileSync(path, newer);
  await assert.rejects(use, /column-\d+\.bin: (?:it )?has version 2, but this program reads 1/);
  writeFileSync(path, bytes.subarray(0, bytes.length - 1));
  await assert.rejects(use, trawlError('INDEX_FILE_FOREIGN', /its size differs from its header/));
  // Ends behind the values, before the place of the texts, and its header says so.
  const short = Buffer.from(bytes.subarray(0, 136));
  short.writeBigUInt64LE(136n, 80);
  writeFileSync(path, short);
  await assert.rejects(use, trawlError('INDEX_FILE_FOREIGN', /its size differs from its header/));
  await assert.rejects(ColumnFile.read(path), trawlError('INDEX_FILE_FOREIGN', /its size differs from its header/));
});

test('a file of another type than its column is refused, also between shards of the right type', async (t) => {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: 6 }, (_, n) => ({ n, s: `text ${n}` }));
  const [numbers, texts] = await writeColumns(
    folder,
    rows,
    [
      { name: 'n', type: 'number' },
      { name: 's', type: 'string' },
    ],
    [2, 2, 2],
  );
  const mixed = { ...texts!, paths: [texts!.paths[0]!, numbers!.paths[1]!, texts!.paths[2]!] };
  for (const isNative of loaded.ok ? [false, true] : [false]) {
    await assert.rejects(
      async () => {
        const filters = isNative
          ? await openNativeRowFilters([mixed], rows.length, (loaded as { kernel: Kernel }).kernel)
          : referenceRowFilters([mixed], rows.length);
        await rowsOf(filters, [mixed], "s = 'text 5'");
      },
      trawlError('INDEX_FILE_FOREIGN', /column-\d+\.bin: it has the type number, but the column has the type string/),
    );
  }
});

test('a filter is refused for an unknown column, a value of another type and a range of booleans', () => {
  const bind = (expression: string): unknown => bindFilter(parseFilterExpression(expression), COLUMNS, 'wiki');
  assert.throws(
    () => bind("sauce = 'a'"),
    trawlError(
      'INVALID_REQUEST',
      /names the column "sauce", but the index wiki has source \(string\), size \(number\), archived \(boolean\), meta\.date \(date\)/,
    ),
  );
  assert.throws(
    () => bind('source = 1'),
    trawlError('INVALID_REQUEST', /"source" is a string, .* with 1; expected a text/),
  );
  assert.throws(() => bind("size in (1, '2')"), trawlError('INVALID_REQUEST', /"size" is a number, .* with "2"/));
  assert.throws(
    () => bind("archived = 'true'"),
    trawlError('INVALID_REQUEST', /is a boolean, .*expected true or false/),
  );
  assert.throws(() => bind("meta.date > '2020'"), trawlError('INVALID_REQUEST', /is a date, .*such as 2020-01-31/));
  assert.throws(() => bind('archived > false'), trawlError('INVALID_REQUEST', /cannot be compared by >\. Use =, !=/));
  assert.throws(
    () => bindFilter(parseFilterExpression('a'), [], 'wiki'),
    trawlError('INVALID_REQUEST', /has no columns\. Add them with trawl optimize INDEX --column/),
  );
});

test('the cache computes equal filters once, gives the same bitmap, and evicts the least recently used', async (t) => {
  const rows = Array.from({ length: 8_000 }, (_, n) => ({ n }));
  const columns = await writeColumns(await tempFolder(t), rows, [{ name: 'n', type: 'number' }]);
  const filters = referenceRowFilters(columns, rows.length);
  let evaluations = 0;
  const counting: RowFilters = {
    rows: (bound) => {
      evaluations++;
      return filters.rows(bound);
    },
    extremes: (column, request) => filters.extremes(column, request),
    close: () => filters.close(),
  };
  // Two bitmaps of 1,000 bytes with their keys.
  const cache = new FilterCache(counting, 3_000);
  const get = (expression: string) => cache.rows(bindFilter(parseFilterExpression(expression), columns, 'ix'));
  const [first, second] = await Promise.all([get('n < 5 and n > 1'), get('n > 1 and n < 5')]);
  assert.equal(first, second);
  assert.equal(await get('n < 5 and n > 1'), first);
  assert.equal(evaluations, 1);
  await get('n = 1');
  await get('n < 5 and n > 1');
  assert.equal(evaluations, 2);
  await get('n = 2');
  assert.equal(await get('n > 1 and n < 5'), first, 'used last, so not evicted');
  assert.equal(evaluations, 3);
  await get('n = 1');
  assert.equal(evaluations, 4, 'evicted');
  assert.ok(cache.bytes <= 3_000);
  await cache.close();
});

test('an evaluation that failed is not cached', async () => {
  let fails = true;
  const source: ColumnSource = { name: 'n', type: 'number', paths: ['/nowhere/column-0.bin'] };
  const filters = referenceRowFilters([source], 0);
  const cache = new FilterCache({
    rows: (bound) => {
      if (fails) return filters.rows(bound);
      return referenceRowFilters([{ ...source, paths: [] }], 0).rows(bound);
    },
    extremes: (column, request) => filters.extremes(column, request),
    close: () => filters.close(),
  });
  const bound = bindFilter(parseFilterExpression('n = 1'), [source], 'ix');
  await assert.rejects(cache.rows(bound), trawlError('INDEX_FILE_MISSING', /column-0\.bin/));
  fails = false;
  assert.equal((await cache.rows(bound)).rows, 0);
});
