import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mergeIndex } from '../../indexer/building/merge-index.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, job } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';
import { indexProblems } from './index-problems.ts';
import { filesOf, update } from './update.ts';
import { indexed, kernel, liveIds, row, rows } from './updated-index.ts';

test('a second change of an index is refused while the first runs', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1));
  let second: unknown;
  const encoder = new FakeTextEncoder({
    before: async () => {
      second ??= await removePassages(out, ['0']).catch((error: unknown) => error);
    },
  });
  await to(rows(0, 1, 2), { encoder });
  assert.ok(trawlError('BUILD_LOCKED', /is building .*ix\.partial/)(second));
  assert.deepEqual(await liveIds(out), { 0: 0, 1: 1, 2: 2 });
});

test('an update refuses the folder of an unfinished build, and a build that of an unfinished update', async (t) => {
  const { out, to, corpusOf } = await indexed(t, rows(0, 1));
  const corpus = corpusOf(rows(5, 6, 7, 8));
  const options = { corpus, out, overwrite: true };
  await job(0, 2, options);
  await assert.rejects(to(rows(3)), trawlError('BUILD_DIFFERS', /its shards were built by jobs \(--shard i\/n\)/));
  await assert.rejects(removePassages(out, ['0']), trawlError('BUILD_DIFFERS', /built by jobs/));
  await job(1, 2, options);
  await mergeIndex(out, { overwrite: true, uniqueIds: false });
  assert.deepEqual(await liveIds(out), { 0: 5, 1: 6, 2: 7, 3: 8 });

  const failing = { encoder: new FakeTextEncoder({ failing: () => true }) };
  await assert.rejects(build({ ...options, ...failing }), trawlError('ENCODING_FAILED', /The finished part is kept/));
  await assert.rejects(to(rows(3)), trawlError('BUILD_DIFFERS', /it is a build, not an update/));
  await build({ ...options });
  await assert.rejects(to(rows(3), failing), trawlError('ENCODING_FAILED', /The finished part is kept/));
  await assert.rejects(build({ ...options }), trawlError('BUILD_DIFFERS', /it is an update of the index/));
  await assert.rejects(
    removePassages(out, ['5']),
    trawlError('BUILD_DIFFERS', /it is an unfinished update of the index/),
  );
  await assert.rejects(
    to(rows(4)),
    trawlError('BUILD_DIFFERS', /corpus file 1: corpus-\d\.jsonl, now corpus-\d\.jsonl/),
  );
  assert.equal((await to(rows(4), { restart: true })).added, 1);
});

test('a failed update resumes, and embeds no row twice', async (t) => {
  const { out, corpusOf } = await indexed(t, rows(0, 1));
  const corpus = corpusOf(Array.from({ length: 2_000 }, (_, i) => row(i)));
  const failing = new FakeTextEncoder({ failing: (text) => text === 'passage 1700' });
  const options = { corpus, out, kernel, shardRows: 600, checkpointMs: 0 };
  const before = filesOf(out);
  await assert.rejects(
    update({ ...options, encoder: failing }),
    trawlError('ENCODING_FAILED', /The finished part is kept/),
  );
  assert.deepEqual(filesOf(out), before);
  const encoder = new FakeTextEncoder();
  const { added, resumedRows } = await update({ ...options, encoder });
  assert.equal(added, 1_998);
  assert.ok(resumedRows > 1_000 && encoder.texts.length === added - resumedRows, `${resumedRows}`);
  assert.deepEqual(await indexProblems(out), []);
});

test('the build records of a shard that was complete when its process died are removed', async (t) => {
  const { out, corpusOf } = await indexed(t, rows(0, 1));
  const corpus = corpusOf(rows(0, 1, 2, 3));
  const options = { corpus, out, kernel, shardRows: 1 };
  const failing = new FakeTextEncoder({ failing: (text) => text === 'passage 3' });
  await assert.rejects(update({ ...options, encoder: failing }), trawlError('ENCODING_FAILED'));
  const shard = join(`${out}.partial`, 'shard-00001');
  for (const name of ['checkpoint.json', 'passages.json']) writeFileSync(join(shard, name), '{}');
  await update(options);
  const names = readdirSync(join(out, 'shard-00001'));
  assert.deepEqual(
    names.filter((name) => name === 'checkpoint.json' || name === 'passages.json'),
    [],
  );
});

test('files that earlier updates left in the index are removed by the next, and no others', async (t) => {
  const { out, to } = await indexed(t, rows(0, 1, 2));
  const { manifest: first } = await to(rows(0, 1));
  mkdirSync(join(out, 'shard-00007'));
  writeFileSync(join(out, 'shard-00007', 'shard.json'), '{}');
  writeFileSync(join(out, `tombstones-${'a'.repeat(32)}.bin`), '');
  writeFileSync(join(out, 'README.md'), 'about this index');
  const { manifest } = await to(rows(0, 7));
  assert.deepEqual(
    readdirSync(out).sort(),
    [
      'README.md',
      'manifest.json',
      'shard-00000',
      'shard-00001',
      first.tombstones!.path,
      manifest.tombstones!.path,
    ].sort(),
    'the bitmap of the previous generation stays for readers that are just opening it',
  );
});

test('a merge has nothing to do if only the folder of a killed removal is left', async (t) => {
  const { out } = await indexed(t, rows(0, 1));
  mkdirSync(`${out}.partial`);
  const merged = await mergeIndex(out, { overwrite: false, uniqueIds: false });
  assert.deepEqual([merged.merged, merged.manifest.rows], [false, 2]);
});
