import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from './build.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf, searchIndex } from './update.ts';

async function index(t: TestContext): Promise<string> {
  const folder = await tempFolder(t);
  const text = ['"a"', '7', '"7"', '9007199254740993', '"a"', 'null', '"ü /"']
    .map((id, i) => `{"id": ${id}, "contents": "passage ${i}"}\n`)
    .join('');
  const out = join(folder, 'ix');
  await build({ corpus: writeCorpus(folder, { 'c.jsonl': text }), out, shardRows: 3 });
  return out;
}

test('all passages with an id are deleted, the integer 12 and "12" alike, and unknown ids are reported', async (t) => {
  const out = await index(t);
  const before = readIndexManifest(out);
  const { removed, unknownIds, unknownExamples, manifest } = await removePassages(out, [
    'a',
    '7',
    '9007199254740993',
    'ü /',
    'none',
    'A',
    '7',
    '007',
  ]);
  assert.deepEqual([removed, unknownIds, unknownExamples], [6, 4, ['none', 'A', '7', '007']]);
  assert.deepEqual(
    (await searchIndex(out, 'any', 10)).map(({ row }) => row),
    [5],
  );
  assert.deepEqual([manifest.rows, manifest.tombstones?.rows, manifest.corpus.duplicateIds], [7, 6, 0]);
  const reading = { format: null, tsvLayout: 'auto', tsvIdType: 'auto', skipBadLines: false };
  assert.deepEqual(manifest.lastUpdate, { kind: 'remove', before: before.generation, reading });
  assert.deepEqual(manifest.shards, before.shards);
  assert.notEqual(manifest.generation, before.generation);
  assert.deepEqual(await indexProblems(out), []);
  assert.equal(existsSync(`${out}.partial`), false);
});

test('deleting unknown ids changes nothing, and deletions add up', async (t) => {
  const out = await index(t);
  const files = filesOf(out);
  assert.equal((await removePassages(out, ['none'])).removed, 0);
  assert.equal((await removePassages(out, [])).removed, 0);
  assert.deepEqual(filesOf(out), files);
  await removePassages(out, ['a']);
  const { manifest } = await removePassages(out, ['7']);
  assert.equal(manifest.tombstones?.rows, 4);
});

test('an id with leading zeros is not the integer', async (t) => {
  const out = await index(t);
  assert.equal((await removePassages(out, ['007', '+7', '-7', '7.0'])).removed, 0);
});

test('without an index nothing is created', async (t) => {
  const folder = await tempFolder(t);
  await assert.rejects(removePassages(join(folder, 'none'), ['a']), trawlError('INDEX_NOT_FOUND'));
  assert.equal(existsSync(join(folder, 'none.partial')), false);
});

test('if reading the ids fails, nothing is deleted', async (t) => {
  const out = await index(t);
  const files = filesOf(out);
  async function* ids(): AsyncGenerator<string> {
    yield 'a';
    throw new Error('the disk is gone');
  }
  await assert.rejects(removePassages(out, ids()), /the disk is gone/);
  assert.deepEqual(filesOf(out), files);
  assert.equal(existsSync(`${out}.partial`), false);
});

test('trawl verify finds a changed bitmap of deleted rows', async (t) => {
  const out = await index(t);
  const { manifest } = await removePassages(out, ['a']);
  const path = join(out, manifest.tombstones!.path);
  writeFileSync(path, Buffer.from([0b1]));
  assert.match((await indexProblems(out)).join(), /tombstones-.*\.bin: sha256 is/);
});
