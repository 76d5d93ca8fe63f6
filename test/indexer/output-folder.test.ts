import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { listCorpusFiles } from '../../corpus/list-corpus-files.ts';
import { scanCorpus } from '../../corpus/scan-corpus.ts';
import { resolveBuild } from '../../indexer/building/build.ts';
import { buildRecord } from '../../indexer/building/build-settings.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, buildOptions, readIndex, writeCorpus } from './build.ts';
import { FakeTextEncoder } from './fake-text-encoder.ts';

/** A small and a large corpus, and an index of the small one. */
async function oldIndex(t: TestContext): Promise<{ folder: string; out: string; small: string[]; large: string[] }> {
  const folder = await tempFolder(t);
  const rows = Array.from({ length: 1_500 }, (_, i) => ({ id: i, contents: `passage ${i}` }));
  const small = writeCorpus(folder, { 'small.jsonl': rows.slice(0, 3) });
  const large = writeCorpus(folder, { 'large.jsonl': rows });
  const out = join(folder, 'index');
  await build({ corpus: small, out });
  return { folder, out, small, large };
}

test('an index is replaced only with overwrite; a folder that is not an index never is', async (t) => {
  const { folder, out, large } = await oldIndex(t);
  await assert.rejects(build({ corpus: large, out }), trawlError('INDEX_EXISTS', /already is an index.*--overwrite/));
  assert.equal(readIndex(out).manifest.rows, 3);
  assert.equal((await build({ corpus: large, out, overwrite: true })).manifest.rows, 1_500);
  assert.equal(readIndex(out).manifest.rows, 1_500);
  const mine = join(folder, 'mine');
  mkdirSync(mine);
  writeFileSync(join(mine, 'thesis.txt'), 'years of work');
  await assert.rejects(
    build({ corpus: large, out: mine, overwrite: true }),
    trawlError('INDEX_EXISTS', /is not an index\. It is not replaced/),
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

test('the old index stays in place, and opens, until the new one is complete', async (t) => {
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
  assert.deepEqual(readdirSync(dirname(out)).sort(), ['index', 'large.jsonl', 'small.jsonl']);
});

test('a failed build leaves the old index', async (t) => {
  const { out, large } = await oldIndex(t);
  const before = readFileSync(join(out, 'manifest.json'));
  const encoder = new FakeTextEncoder({ failing: (text) => text === 'passage 1200' });
  await assert.rejects(build({ corpus: large, out, overwrite: true, encoder }), trawlError('ENCODING_FAILED'));
  assert.deepEqual(readFileSync(join(out, 'manifest.json')), before);
  assert.equal(readIndex(out).documents.length, 3);
});

test('the next build removes the files of a build that was killed at its start', async (t) => {
  const { out, small } = await oldIndex(t);
  // As after a kill while the first shard was written.
  const scan = await scanCorpus(listCorpusFiles(small));
  mkdirSync(join(`${out}.partial`, 'shard-00000'), { recursive: true });
  const record = buildRecord(resolveBuild(buildOptions({ corpus: small, out })), 1, scan);
  writeFileSync(join(`${out}.partial`, 'build.json'), JSON.stringify(record));
  writeFileSync(join(`${out}.partial`, 'shard-00000', 'passages.sqlite'), 'half a file');
  writeFileSync(join(`${out}.partial`, 'shard-00000', 'vectors.faiss'), 'half a file');
  await build({ corpus: small, out, overwrite: true });
  assert.equal(existsSync(`${out}.partial`), false);
  assert.equal(readIndex(out).documents.length, 3);
});

/** The state of a process that was killed between the two renames of a publication. */
function killedBetweenRenames(out: string): string {
  const name = `${basename(out)}.replaced-0123456789abcdef`;
  renameSync(out, join(dirname(out), name));
  mkdirSync(`${out}.partial`, { recursive: true });
  const record = { format: 'trawl-replaced', version: 1, name };
  writeFileSync(join(`${out}.partial`, 'replaced.json'), JSON.stringify(record));
  return join(dirname(out), name);
}

test('an old index that a killed build had renamed gets its name back, and still needs --overwrite', async (t) => {
  const { out, small, large } = await oldIndex(t);
  const aside = killedBetweenRenames(out);
  await assert.rejects(build({ corpus: large, out }), trawlError('INDEX_EXISTS'));
  assert.equal(readIndex(out).manifest.rows, 3);
  assert.equal(existsSync(aside), false);
  killedBetweenRenames(out);
  await build({ corpus: small, out, overwrite: true });
  assert.deepEqual(readdirSync(dirname(out)).sort(), ['index', 'large.jsonl', 'small.jsonl']);
});

test('the next build removes an old index that a killed build had replaced', async (t) => {
  const { folder, out, small } = await oldIndex(t);
  const name = 'index.replaced-0123456789abcdef';
  cpSync(out, join(folder, name), { recursive: true });
  writeFileSync(join(out, 'replaced.json'), JSON.stringify({ format: 'trawl-replaced', version: 1, name }));
  await assert.rejects(build({ corpus: small, out }), trawlError('INDEX_EXISTS'));
  assert.deepEqual(readdirSync(folder).sort(), ['index', 'large.jsonl', 'small.jsonl']);
  assert.deepEqual(readdirSync(out).sort(), ['manifest.json', 'shard-00000']);
});

test('a user’s folder beside the index is never removed or renamed, whatever its name, even if it is an index', async (t) => {
  const { folder, out, small, large } = await oldIndex(t);
  const mine = [`${out}.replaced`, `${out}.replaced-0123456789abcdef`, join(folder, 'other.replaced')];
  for (const path of mine) cpSync(out, path, { recursive: true });
  mkdirSync(`${out}.replaced-mine`);
  await build({ corpus: large, out, overwrite: true });
  assert.equal(readIndex(out).manifest.rows, 1_500);
  for (const path of mine) assert.equal(readIndex(path).manifest.rows, 3, path);
  assert.ok(existsSync(`${out}.replaced-mine`));
  // If there is no index at `out`, none of them is renamed to it.
  renameSync(out, join(folder, 'elsewhere'));
  await build({ corpus: small, out });
  for (const path of mine) assert.equal(readIndex(path).manifest.rows, 3, path);
  // A record that names another folder is ignored.
  for (const name of ['other.replaced', '../index.replaced', 'index.replaced', '']) {
    writeFileSync(join(out, 'replaced.json'), JSON.stringify({ format: 'trawl-replaced', version: 1, name }));
    await build({ corpus: small, out, overwrite: true });
  }
  for (const path of mine) assert.equal(readIndex(path).manifest.rows, 3, path);
});

test('of an index behind a link only the link is replaced', async (t) => {
  const { folder, out, large } = await oldIndex(t);
  symlinkSync('index', join(folder, 'link'));
  await build({ corpus: large, out: join(folder, 'link'), overwrite: true });
  assert.equal(readIndex(join(folder, 'link')).manifest.rows, 1_500);
  assert.equal(readIndex(out).documents.length, 3);
  assert.deepEqual(readdirSync(folder).sort(), ['index', 'large.jsonl', 'link', 'small.jsonl']);
});

test('a second build of an index is refused while the first runs, and does no harm', async (t) => {
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

test('a path where no folder can be created is an error with the reason', async (t) => {
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

test('a path without an existing parent ends with an error, not in a loop', {
  skip: existsSync('/proc/self') ? false : '/proc does not exist',
}, async (t) => {
  const { small } = await oldIndex(t);
  await assert.rejects(
    build({ corpus: small, out: '/proc/no/such/index' }),
    trawlError('OUTPUT_NOT_WRITABLE', /\/proc\/no\/such\/index/),
  );
});

test('missing parent folders are created', async (t) => {
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

test('errors of the disk get a code, other errors stay as they are', () => {
  const failed = (code: string): unknown =>
    writeFailure(Object.assign(new Error(`${code}: it failed`), { code }), '/data/index');
  for (const code of ['ENOSPC', 'SQLITE_FULL']) {
    assert.ok(trawlError('DISK_FULL', /^\/data\/index: no space left/)(failed(code)));
  }
  assert.ok(trawlError('DISK_FULL', /^\/data\/index: the disk quota is used up/)(failed('EDQUOT')));
  for (const code of ['EACCES', 'EROFS', 'EPERM', 'SQLITE_CANTOPEN', 'SQLITE_IOERR_WRITE']) {
    assert.ok(trawlError('OUTPUT_NOT_WRITABLE', /^\/data\/index cannot be written: /)(failed(code)));
  }
  assert.equal((failed('SQLITE_CONSTRAINT') as Error).message, 'SQLITE_CONSTRAINT: it failed');
  const known = new TrawlError('CORPUS_EMPTY', 'Nothing.');
  assert.equal(writeFailure(known, 'x'), known);
  assert.equal(writeFailure('text', 'x'), 'text');
});
