import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { baselinePython } from '../../bench/baselines.ts';
import type { Bm25Record } from '../../bench/lexical/bench-bm25.ts';
import type { LexicalRecord } from '../../bench/lexical/lexical-case.ts';
import { withoutLucene } from '../../bench/lucene.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { runTrawl } from '../cli/run-trawl.ts';
import { peerCache } from '../helpers/peers.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample');
const SMALL = [
  '--corpus',
  join(SAMPLE, 'passages.jsonl'),
  '--query-texts',
  join(SAMPLE, 'questions.jsonl'),
  '--rows',
  '300',
];
const CACHE = ['--cache', peerCache()];
const bench = (...args: string[]) =>
  runTrawl(['bench', 'bm25', ...SMALL, ...CACHE, '--runs', '1', '--threads', '2', ...args]);

const skip = loadKernel().ok ? false : 'the native engine is not built';
const python = baselinePython(peerCache(), 'bm25');
const withoutPython =
  python === undefined ? 'the Python baselines are not installed: trawl bench baselines bm25' : false;

const isSearch = (record: Bm25Record): record is LexicalRecord => 'queriesPerS' in record;

test('Lucene gives the same rows and score bits over generated passages', {
  skip: skip || withoutLucene(peerCache()),
}, async () => {
  const ended = await bench('--against', 'lucene', '--json');
  assert.equal(ended.code, 0, ended.stderr);
  const records = (JSON.parse(ended.stdout) as Bm25Record[]).filter(({ engine }) => engine === 'lucene');
  assert.equal(records.filter((record) => !isSearch(record)).length, 2);
  const alone = records.filter(isSearch).filter(({ threads }) => threads === 1);
  assert.deepEqual(
    alone.map(({ agreement }) => agreement),
    [1, 1, 1, 1],
  );
});

test('bm25s and SQLite are measured with the same terms', { skip: skip || withoutPython }, async () => {
  const ended = await bench('--against', 'bm25s,sqlite', '--json');
  assert.equal(ended.code, 0, ended.stderr);
  assert.doesNotMatch(ended.stderr, /left out/);
  const records = JSON.parse(ended.stdout) as Bm25Record[];
  for (const name of ['bm25s', 'sqlite']) {
    const own = records.filter(({ engine }) => engine === name);
    assert.equal(own.length, 10);
    for (const { queriesPerS } of own.filter(isSearch)) assert.ok(queriesPerS > 0);
  }
});
