import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { BenchBm25Result, Bm25IndexRecord, Bm25Record } from '../../../bench/lexical/bench-bm25.ts';
import type { LexicalRecord } from '../../../bench/lexical/lexical-case.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { runTrawl } from '../../cli/run-trawl.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample');
const SMALL = [
  '--corpus',
  join(SAMPLE, 'passages.jsonl'),
  '--query-texts',
  join(SAMPLE, 'questions.jsonl'),
  '--rows',
  '300',
];
const bench = (...args: string[]) => runTrawl(['bench', 'bm25', ...SMALL, '--runs', '1', '--threads', '2', ...args]);

const skip = loadKernel().ok ? false : 'the native engine is not built';

const isSearch = (record: Bm25Record): record is LexicalRecord => 'queriesPerS' in record;
const isIndex = (record: Bm25Record): record is Bm25IndexRecord => !isSearch(record);

test('bench bm25 measures Trawl over a corpus and a generated one', { skip }, async (t) => {
  const cache = await tempFolder(t);
  const out = join(cache, 'result.json');
  const ended = await bench('--against', 'none', '--cache', cache, '--json', '--out', out);
  assert.equal(ended.code, 0, ended.stderr);
  const records = JSON.parse(ended.stdout) as Bm25Record[];
  const corpora = ['corpus', 'generated-300'];
  assert.deepEqual(
    records.map((record) => record.case),
    corpora.flatMap((corpus) => [
      `bm25/${corpus}/index`,
      ...['k10/t1', 'k10/t2', 'k1000/t1', 'k1000/t2'].map((which) => `bm25/${corpus}/queries/${which}`),
    ]),
  );
  for (const record of records.filter(isIndex)) {
    assert.ok(record.rows > 0 && record.textBytes! > record.rows && record.indexBytes > 0);
    assert.ok(record.bitsPerPosting > 8 && record.buildMbPerS! > 0 && record.analysisMbPerS! > 0 && record.openMs > 0);
  }
  for (const record of records.filter(isSearch)) {
    assert.ok(record.meanMs! > 0 && record.p99Ms! >= record.p50Ms! && record.queriesPerS > 0 && record.analysisMs! > 0);
    assert.ok(record.postingsReadShare! > 0 && record.postingsReadShare! <= 1);
    assert.deepEqual([record.ratioToTrawl, record.agreement], [1, null]);
  }
  const written = JSON.parse(await readFile(out, 'utf8')) as BenchBm25Result;
  assert.deepEqual(written.records, records);
  assert.deepEqual(written.skipped, []);
});

test('bench bm25 --index measures the searches of an index, and refuses a corpus and an index without words', {
  skip,
}, async (t) => {
  const folder = join(await tempFolder(t), 'words');
  const passages = join(SAMPLE, 'passages.jsonl');
  const built = await runTrawl(['index', passages, '--bm25', '--out', folder, '--shard-rows', '100', '--json']);
  assert.equal(built.code, 0, built.stderr);
  const measure = (...args: string[]) =>
    runTrawl(['bench', 'bm25', '--query-texts', join(SAMPLE, 'questions.jsonl'), '--runs', '1', '--json', ...args]);
  const ended = await measure('--index', folder, '--threads', '1');
  assert.equal(ended.code, 0, ended.stderr);
  const records = JSON.parse(ended.stdout) as Bm25Record[];
  const [index] = records.filter(isIndex);
  assert.deepEqual([index?.rows, index?.buildSeconds, index?.textBytes], [270, null, null]);
  assert.ok(index!.bitsPerPosting > 8 && index!.openMs > 0);
  if (process.platform === 'linux') {
    assert.ok(index!.residentBytes! > 0 && index!.residentBytes! <= index!.indexBytes + 3 * 4096);
  }
  assert.deepEqual(
    records.filter(isSearch).map((record) => record.case),
    ['bm25/words/queries/k10/t1', 'bm25/words/queries/k1000/t1'],
  );
  const both = await measure('--index', folder, '--corpus', passages);
  assert.equal(both.code, 2);
  assert.match(both.stderr, /--corpus .* --index/);
});

test('bench bm25 leaves out baselines that are not installed', { skip }, async (t) => {
  const ended = await bench('--cache', await tempFolder(t));
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /lucene is left out: Lucene [\d.]+ is not installed/);
  for (const name of ['bm25s', 'sqlite']) assert.match(ended.stderr, new RegExp(`${name} is left out: no Python`));
  assert.match(ended.stdout, /\| +bm25\/corpus\/queries\/k10\/t1 \| trawl/);
});
