import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { currentIndex } from '../../indexer/building/is-current.ts';
import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { optimizeIndex } from '../../indexer/optimize/optimize-index.ts';
import { compactIndex } from '../../indexer/update/compact-index.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { openRowFilters } from '../../src/engine/columns/open-row-filters.ts';
import { bindFilter } from '../../src/engine/filter/bind-filter.ts';
import { type Column, parseColumns } from '../../src/engine/filter/column.ts';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { PassageFile } from '../../src/index/passages/passage-file.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, job as buildJob, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf } from './update.ts';
import { indexed, kernel } from './updated-index.ts';

const COLUMNS: readonly Column[] = parseColumns(['source:string', 'meta.date:date']);
const quietly = { float16: false, onStep: () => undefined };

/** Source a, b or none; a date in the year 2000 + id. */
function passages(first: number, count: number): { id: string; contents: string }[] {
  return Array.from({ length: count }, (_, i) => {
    const id = first + i;
    const source = id % 3 === 2 ? {} : { source: id % 3 === 0 ? 'a' : ['b', 'c'] };
    return { id: `p${id}`, contents: `passage ${id}`, ...source, meta: { date: `${2000 + id}-01-01` } };
  });
}

/** Ids of the live passages that pass. */
async function idsThatPass(folder: string, expression: string): Promise<string[]> {
  const { columns, manifest, liveRows, passages: shards } = openIndexDirectory(folder);
  const filters = await openRowFilters(columns, manifest.rows);
  const files = shards.map(({ path, firstRow }) => ({ firstRow, file: new PassageFile(path) }));
  try {
    const rows = await filters.rows(bindFilter(parseFilterExpression(expression), columns, 'ix').test);
    return [...rows]
      .filter((row) => liveRows?.has(row) !== false)
      .map((row) => {
        const { file, firstRow } = files.findLast((shard) => shard.firstRow <= row)!;
        return (JSON.parse(file.document(row - firstRow)!) as { id: string }).id;
      })
      .sort();
  } finally {
    for (const { file } of files) file.close();
    await filters.close();
  }
}

function idsOf(...numbers: number[]): string[] {
  return numbers.map((number) => `p${number}`).sort();
}

async function corpusFolder(t: TestContext, rows: readonly object[] | string) {
  const folder = await tempFolder(t);
  return { folder, out: join(folder, 'ix'), corpus: writeCorpus(folder, { 'c.jsonl': rows }) };
}

const columnFiles = (out: string, shard = 'shard-00000'): string[] =>
  readdirSync(join(out, shard)).filter((name) => name.startsWith('column'));

test('a build makes the columns of every shard, and verify finds no problem', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 10));
  const { manifest } = await build({ corpus, out, kernel, columns: COLUMNS, shardRows: 4 });
  assert.deepEqual(manifest.columns, [
    { name: 'source', type: 'string' },
    { name: 'meta.date', type: 'date' },
  ]);
  assert.deepEqual(await idsThatPass(out, "source in ('a', 'c')"), idsOf(0, 1, 3, 4, 6, 7, 9));
  assert.deepEqual(await idsThatPass(out, 'meta.date > 2006-06-01 and not source exists'), idsOf(8));
  assert.deepEqual(await indexProblems(out), []);
  const again = join(out, '..', 'again');
  await build({ corpus, out: again, kernel, columns: COLUMNS, shardRows: 4 });
  for (const name of ['shard-00001/shard.json', 'shard-00001/column-0.bin', 'manifest.json']) {
    assert.deepEqual(readFileSync(join(again, name)), readFileSync(join(out, name)), `${name} has other bytes`);
  }
});

test('a value of another type stops the build before anything is embedded, with file, line and value', async (t) => {
  for (const [value, message] of [
    [{ source: 7 }, /c\.jsonl:2: the column "source" is a string, but found the number 7/],
    [{ source: ['x', { y: 1 }] }, /c\.jsonl:2: .* but found an object/],
    [
      { meta: { date: '31.1.2020' } },
      /c\.jsonl:2: .*"meta\.date" is a date, but found "31\.1\.2020"; a date is a text such as/,
    ],
    [{ meta: [{ date: '2020-01-01' }, { date: 5 }] }, /c\.jsonl:2: .* but found 5; a date/],
  ] as const) {
    const { out, corpus } = await corpusFolder(t, [
      { id: 1, contents: 'a' },
      { id: 2, contents: 'b', ...value },
    ]);
    const encoder = new FakeTextEncoder();
    await assert.rejects(build({ corpus, out, encoder, columns: COLUMNS }), trawlError('CORPUS_BAD_LINE', message));
    assert.deepEqual(encoder.texts, []);
  }
});

test('an integer that a number column would round stops the build, and optimize', async (t) => {
  const rows = '{"id":1,"text":"a","n":9007199254740991}\n{"id":2,"text":"b","n":{"m":[9007199254740993]}}\n';
  const { out, corpus } = await corpusFolder(t, rows);
  const column: Column = { name: 'n.m', type: 'number' };
  const message =
    /is a number, but found the integer 9007199254740993, which a float64 does not hold: write it as a text/;
  await assert.rejects(build({ corpus, out, columns: [column] }), trawlError('CORPUS_BAD_LINE', message));
  await build({ corpus, out });
  const columns = { add: [column], drop: [] };
  await assert.rejects(optimizeIndex(out, undefined, { ...quietly, columns }), trawlError('CORPUS_BAD_LINE', message));
});

test('updates, deletions and compaction keep the columns of every live row', async (t) => {
  const { out, to } = await indexed(t, passages(0, 6), { columns: COLUMNS, shardRows: 3 });
  await to(passages(2, 8), { shardRows: 2 });
  assert.deepEqual(await idsThatPass(out, "source = 'a'"), idsOf(3, 6, 9));
  await removePassages(out, ['p6', 'p4']);
  assert.deepEqual(await idsThatPass(out, 'meta.date exists'), idsOf(2, 3, 5, 7, 8, 9));
  assert.deepEqual(await indexProblems(out), []);
  await compactIndex(out, kernel, { onStep: () => undefined });
  assert.equal(readIndexManifest(out).rows, 6);
  assert.deepEqual(await idsThatPass(out, "source != 'b'"), idsOf(2, 3, 5, 8, 9));
  assert.deepEqual(await idsThatPass(out, 'meta.date >= 2007-01-01'), idsOf(7, 8, 9));
  assert.deepEqual(await indexProblems(out), []);
  await to(passages(9, 3), { type: 'append' });
  assert.deepEqual(await idsThatPass(out, "source = 'b' and meta.date >= 2007-01-01"), idsOf(7, 10));
});

test('jobs make the columns of their shards; a merge refuses shards with others', async (t) => {
  const { out, corpus, folder } = await corpusFolder(t, passages(0, 7));
  const job = (index: number, columns: readonly Column[], to = out) =>
    buildJob(index, 2, { corpus, out: to, columns, kernel });
  await job(0, COLUMNS);
  await job(1, COLUMNS.slice(0, 1));
  await assert.rejects(
    mergeIndex(out, { overwrite: false, uniqueIds: false }),
    trawlError('SHARDS_DIFFER', /columns: source:string here, source:string, meta\.date:date in shard-00000/),
  );
  await assert.rejects(job(1, COLUMNS), trawlError('BUILD_DIFFERS', /columns: source:string, now source:string, meta/));
  const right = join(folder, 'right');
  await job(0, COLUMNS, right);
  await job(1, COLUMNS, right);
  await mergeIndex(right, { overwrite: false, uniqueIds: false });
  assert.deepEqual(await idsThatPass(right, "source = 'a'"), idsOf(0, 3, 6));
});

test('a build is resumed only with the same columns, and --if-changed builds for others', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 6));
  const failing = new FakeTextEncoder({ failing: (text) => text === 'passage 5' });
  await assert.rejects(build({ corpus, out, encoder: failing, columns: COLUMNS }));
  await assert.rejects(build({ corpus, out }), trawlError('BUILD_DIFFERS', /columns: source:string, .*, now none/));
  await build({ corpus, out, columns: COLUMNS });
  const wanted = {
    corpus,
    corpusOptions: {},
    uniqueIds: false,
    encoder: new FakeTextEncoder(),
    passageTemplate: '{contents}',
  };
  assert.ok(await currentIndex(out, { ...wanted, columns: COLUMNS }));
  assert.equal(await currentIndex(out, wanted), undefined);
});

test('optimize adds columns from the stored passages, with another type after they were dropped, and removes them', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 8));
  await build({ corpus, out, kernel, shardRows: 3 });
  const { generation } = readIndexManifest(out);
  const change = (add: readonly string[], drop: readonly string[] = []) =>
    optimizeIndex(out, undefined, { ...quietly, columns: { add: parseColumns(add), drop } });
  assert.equal((await change(['source:string'])).columnsMade, 3);
  assert.equal((await change(['source:string'])).columnsMade, 0);
  assert.equal((await change(['meta.date:string', 'source:string'])).columnsMade, 3);
  assert.deepEqual(await idsThatPass(out, "meta.date > '2006' and source != 'a'"), idsOf(7));
  await assert.rejects(
    change(['meta.date:date']),
    trawlError(
      'USAGE',
      /--column is meta\.date:date, but the index has the column as string\. Add --drop-column meta\.date/,
    ),
  );
  assert.equal((await change(['meta.date:date'], ['meta.date'])).columnsMade, 3);
  assert.deepEqual(await idsThatPass(out, 'meta.date > 2006-01-01 and source exists'), idsOf(7));
  assert.deepEqual(await indexProblems(out), []);
  assert.deepEqual(columnFiles(out).length, 2, 'the file of the dropped column is removed');
  await assert.rejects(
    change([], ['date']),
    trawlError('USAGE', /--drop-column is "date", but the index has source, meta\.date/),
  );
  await change([], ['source', 'meta.date']);
  assert.equal(readIndexManifest(out).columns, undefined);
  assert.deepEqual(columnFiles(out), []);
  assert.equal(readIndexManifest(out).generation, generation);
  assert.deepEqual(await indexProblems(out), []);
});

test('optimize names the passage whose value has another type, and leaves the index as it was', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 8));
  await build({ corpus, out, kernel, shardRows: 3 });
  const before = filesOf(out);
  await assert.rejects(
    optimizeIndex(out, undefined, { ...quietly, columns: { add: parseColumns(['source:number']), drop: [] } }),
    trawlError(
      'CORPUS_BAD_LINE',
      /passages\.sqlite, the passage of line 1 of its corpus file: the column "source" is a number/,
    ),
  );
  assert.deepEqual([...filesOf(out).keys()].sort(), [...before.keys()].sort());
});

test('an index whose columns are being added opens at every moment, and the same call resumes', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 9));
  await build({ corpus, out, kernel, shardRows: 3, columns: COLUMNS.slice(0, 1) });
  const change = { ...quietly, columns: { add: COLUMNS, drop: [] } };
  for (let stopAt = 1; stopAt <= 3; stopAt++) {
    const stop = new AbortController();
    let steps = 0;
    const onStep = (): void => {
      // The step begins, so shards before it are complete.
      if (++steps === 2) stop.abort();
    };
    await optimizeIndex(out, undefined, { ...change, onStep, signal: stop.signal }).catch((error: unknown) =>
      trawlError('CANCELLED')(error),
    );
    assert.deepEqual(await idsThatPass(out, "source = 'a'"), idsOf(0, 3, 6));
    assert.deepEqual(await indexProblems(out), []);
  }
  assert.deepEqual(await idsThatPass(out, 'meta.date < 2002-01-01'), idsOf(0, 1));
});

test('verify finds changed values, also with a right checksum, and wrong counts', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 6));
  await build({ corpus, out, kernel, columns: COLUMNS });
  const file = join(out, 'shard-00000', 'column-0.bin');
  const bytes = readFileSync(file);
  const other = Buffer.from(bytes);
  // The code of a value of the first rows; the starts are before, because rows have several values.
  const data = Number(other.readBigUInt64LE(56));
  other[data] = other[data]! === 1 ? 2 : 1;
  writeFileSync(file, other);
  const problems = await indexProblems(out);
  assert.ok(
    problems.some((found) => /column-0\.bin: sha256 is/.test(found)),
    problems.join('\n'),
  );
  assert.ok(problems.some((found) => /column-0\.bin: row 0 has other values than its passage/.test(found)));
  other[data] = 200;
  writeFileSync(file, other);
  assert.ok((await indexProblems(out)).some((found) => /row 0 has the code 200, but there are 3/.test(found)));
  writeFileSync(file, bytes);
  assert.deepEqual(await indexProblems(out), []);
  assert.ok(existsSync(file));
});

test('a shard without a column of the index is refused', async (t) => {
  const { out, corpus } = await corpusFolder(t, passages(0, 3));
  await build({ corpus, out, kernel, columns: COLUMNS.slice(0, 1) });
  const path = join(out, 'manifest.json');
  const { checksum: _, ...manifest } = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  writeFileSync(path, JSON.stringify({ ...manifest, columns: [{ name: 'source', type: 'number' }] }));
  assert.throws(
    () => openIndexDirectory(out),
    trawlError('INDEX_FILE_FOREIGN', /does not have the column source \(number\)/),
  );
});
