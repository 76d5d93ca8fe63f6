import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { scanCorpus } from '../../corpus/scan-corpus.ts';
import { buildRecord } from '../../indexer/build/build-settings.ts';
import { writeFailure } from '../../indexer/write-failure.ts';
import { TrawlError } from '../../src/errors.ts';
import { openIndexDirectory } from '../../src/retrieval/index-directory.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, readIndex, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

/** A corpus of each size with an index of the first. */
async function oldIndex(t: TestContext): Promise<{ folder: string; out: string; small: string[]; large: string[] }> {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: 1_500 }, (_, i) => ({ id: i, contents: `passage ${i}` }));
  const small = writeCorpus(folder, { 'small.jsonl': rows.slice(0, 3) });
  const large = writeCorpus(folder, { 'large.jsonl': rows });
  const out = join(folder, 'index');
  await build({ corpus: small, out });
  return { folder, out, small, large };
}

test('an index is replaced only with overwrite, and a folder that is none never', async (t) => {
  const { folder, out, large } = await oldIndex(t);
  await assert.rejects(
    build({ corpus: large, out }),
    trawlError('INDEX_EXISTS', /already holds an index.*--overwrite/),
  );
  assert.equal(readIndex(out).manifest.rows, 3);
  assert.equal((await build({ corpus: large, out, overwrite: true })).manifest.rows, 1_500);
  assert.equal(readIndex(out).manifest.rows, 1_500);
  const mine = join(folder, 'mine');
  mkdirSync(mine);
  writeFileSync(join(mine, 'thesis.txt'), 'years of work');
  await assert.rejects(
    build({ corpus: large, out: mine, overwrite: true }),
    trawlError('INDEX_EXISTS', /is no index; it is left alone/),
  );
  assert.deepEqual(readdirSync(mine), ['thesis.txt']);
  const file = join(mine, 'thesis.txt');
  await assert.rejects(build({ corpus: large, out: file, overwrite: true }), trawlError('INDEX_EXISTS'));
  assert.equal(readFileSync(file, 'utf8'), 'years of work');
  assert.equal(existsSync(`${mine}.partial`) || existsSync(`${file}.partial`), false);
});

test('an empty folder may be filled', async (t) => {
  const { folder, small } = await oldIndex(t);
  mkdirSync(join(folder, 'empty'));
  assert.equal((await build({ corpus: small, out: join(folder, 'empty') })).manifest.rows, 3);
});

test('the old index is in place and whole until the new one is complete', async (t) => {
  const { out, large } = await oldIndex(t);
  let looks = 0;
  const encoder = new FakeTextEncoder({
    before: () => {
      looks++;
      assert.equal(openIndexDirectory(out).manifest.rows, 3);
      assert.equal(readIndex(out).documents.length, 3);
    },
  });
  await build({ corpus: large, out, overwrite: true, encoder });
  assert.ok(looks > 3);
  assert.equal(openIndexDirectory(out).manifest.rows, 1_500);
  assert.equal(existsSync(`${out}.replaced`), false);
});

test('a build that fails leaves the old index', async (t) => {
  const { out, large } = await oldIndex(t);
  const before = readFileSync(join(out, 'manifest.json'));
  const encoder = new FakeTextEncoder({ failing: (text) => text === 'passage 1200' });
  await assert.rejects(build({ corpus: large, out, overwrite: true, encoder }), trawlError('ENCODING_FAILED'));
  assert.deepEqual(readFileSync(join(out, 'manifest.json')), before);
  assert.equal(readIndex(out).documents.length, 3);
});

test('what a build that was killed at its beginning left is cleared away by the next', async (t) => {
  const { out, small } = await oldIndex(t);
  // A disk that fills up after the first note.
  const { encoder, corpusOptions, passageTemplate } = {
    encoder: new FakeTextEncoder(),
    corpusOptions: {},
    passageTemplate: '{contents}',
  };
  const scan = await scanCorpus(listCorpusFiles(small));
  mkdirSync(join(`${out}.partial`, 'shard-00000'), { recursive: true });
  const record = buildRecord({ model: encoder.identity, passageTemplate, corpusOptions, shards: 1, scan });
  writeFileSync(join(`${out}.partial`, 'build.json'), JSON.stringify(record));
  writeFileSync(join(`${out}.partial`, 'shard-00000', 'passages.sqlite'), 'half a file');
  writeFileSync(join(`${out}.partial`, 'shard-00000', 'vectors.faiss'), 'half a file');
  await build({ corpus: small, out, overwrite: true });
  assert.equal(existsSync(`${out}.partial`), false);
  assert.equal(readIndex(out).documents.length, 3);
});

test('an old index that a build died renaming is put back by the next, and still not overwritten unasked', async (t) => {
  const { out, small, large } = await oldIndex(t);
  renameSync(out, `${out}.replaced`);
  await assert.rejects(build({ corpus: large, out }), trawlError('INDEX_EXISTS'));
  assert.equal(readIndex(out).manifest.rows, 3);
  renameSync(out, `${out}.replaced`);
  await build({ corpus: small, out, overwrite: true });
  assert.equal(existsSync(`${out}.replaced`), false);
});

test('a folder of somebody’s own where the old index would be put aside stays, and is named', async (t) => {
  const { out, large } = await oldIndex(t);
  mkdirSync(`${out}.replaced`);
  writeFileSync(join(`${out}.replaced`, 'thesis.txt'), 'years of work');
  const refused = trawlError('INDEX_EXISTS', /index\.replaced exists and is no index.*Move it away/);
  await assert.rejects(build({ corpus: large, out, overwrite: true }), refused);
  assert.deepEqual(readdirSync(`${out}.replaced`), ['thesis.txt']);
  assert.equal(readIndex(out).manifest.rows, 3);
});

test('a second build of the same index is refused while the first is at work, and does no harm', async (t) => {
  const { out, small, large } = await oldIndex(t);
  let begun: () => void = () => undefined;
  let go: () => void = () => undefined;
  const atWork = new Promise<void>((resolve) => (begun = resolve));
  const released = new Promise<void>((resolve) => (go = resolve));
  const slow = new FakeTextEncoder({
    before: async () => {
      begun();
      await released;
    },
  });
  const first = build({ corpus: large, out, overwrite: true, encoder: slow });
  await atWork;
  const locked = trawlError('BUILD_LOCKED', new RegExp(`^Process ${process.pid} on .* is building .*index\\.partial`));
  await assert.rejects(build({ corpus: large, out, overwrite: true }), locked);
  await assert.rejects(build({ corpus: small, out, overwrite: true, restart: true }), locked);
  go();
  assert.equal((await first).manifest.rows, 1_500);
  assert.equal(readIndex(out).documents.length, 1_500);
  assert.equal((await build({ corpus: small, out, overwrite: true })).manifest.rows, 3);
});

test('a place where no folder can be made is named with the reason', async (t) => {
  const { folder, small } = await oldIndex(t);
  await assert.rejects(
    build({ corpus: small, out: join(folder, 'small.jsonl', 'index') }),
    trawlError('OUTPUT_NOT_WRITABLE', /small\.jsonl\/index cannot be written: a part of the path is a file/),
  );
  await assert.rejects(
    build({ corpus: small, out: join(folder, 'x'.repeat(300)) }),
    trawlError('OUTPUT_NOT_WRITABLE', /the name is too long/),
  );
});

test('a place without any existing parent ends with an error and not in a loop', {
  skip: !existsSync('/proc/self'),
}, async (t) => {
  const { small } = await oldIndex(t);
  await assert.rejects(
    build({ corpus: small, out: '/proc/no/such/index' }),
    trawlError('OUTPUT_NOT_WRITABLE', /\/proc\/no\/such\/index/),
  );
});

test('missing parents are made', async (t) => {
  const { folder, small } = await oldIndex(t);
  const out = join(folder, 'a', 'b', 'c');
  await build({ corpus: small, out });
  assert.deepEqual(readdirSync(join(folder, 'a', 'b')), ['c']);
});

test('a folder that vanishes during a build is an error that names the index', async (t) => {
  const { folder, large } = await oldIndex(t);
  const out = join(folder, 'new');
  const encoder = new FakeTextEncoder({ before: () => rmSync(`${out}.partial`, { recursive: true, force: true }) });
  await assert.rejects(
    build({ corpus: large, out, encoder }),
    (error) => error instanceof TrawlError && error.message.includes(out),
  );
  assert.equal(existsSync(out), false);
});

test('errors of the disk get a code of their own, others stay what they are', () => {
  const failed = (code: string): unknown =>
    writeFailure(Object.assign(new Error(`${code}: it failed`), { code }), '/data/index');
  for (const code of ['ENOSPC', 'EDQUOT', 'SQLITE_FULL']) {
    assert.ok(trawlError('DISK_FULL', /^\/data\/index: no space left/)(failed(code)));
  }
  for (const code of ['EACCES', 'EROFS', 'EPERM', 'SQLITE_CANTOPEN', 'SQLITE_IOERR_WRITE']) {
    assert.ok(trawlError('OUTPUT_NOT_WRITABLE', /^\/data\/index cannot be written: /)(failed(code)));
  }
  assert.equal((failed('SQLITE_CONSTRAINT') as Error).message, 'SQLITE_CONSTRAINT: it failed');
  const known = new TrawlError('CORPUS_EMPTY', 'Nothing.');
  assert.equal(writeFailure(known, 'x'), known);
  assert.equal(writeFailure('text', 'x'), 'text');
});
