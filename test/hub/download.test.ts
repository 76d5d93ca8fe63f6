import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DownloadProgress } from '../../hub/download-repository.ts';
import { matchingFiles } from '../../hub/file-patterns.ts';
import { FileLock } from '../../src/file-lock.ts';
import { commitOf, type HubRepositoryContent } from '../helpers/hub-server.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { assertWhole, BIG, CONTENT, start, TOTAL } from './downloads.ts';

test('every file arrives, of one commit, over several pages and from a second origin', async (t) => {
  const { hub, folder, fetch } = await start(t);
  const events: DownloadProgress[] = [];
  const done = await fetch({ onProgress: (event) => events.push(event) });
  assertWhole(folder);
  assert.equal(done.commit, commitOf(CONTENT));
  assert.equal(done.files.length, 5);
  assert.equal(done.transferredBytes, TOTAL);
  assert.equal(hub.sentBytes, TOTAL);
  const last = events.at(-1)!;
  assert.deepEqual([last.allBytes, last.allTotalBytes, last.finishedFiles, last.totalFiles], [TOTAL, TOTAL, 5, 5]);
  assert.ok(events.every(({ bytes, totalBytes }) => bytes <= totalBytes));
});

test('a second run transfers nothing, and one file that was spoilt is fetched again', async (t) => {
  const { hub, folder, fetch } = await start(t);
  await fetch();
  hub.sentBytes = 0;
  assert.equal((await fetch()).transferredBytes, 0);
  assert.equal(hub.sentBytes, 0);
  const spoilt = Buffer.from(BIG);
  spoilt[1000]! ^= 1;
  writeFileSync(join(folder, 'big.bin'), spoilt);
  assert.equal((await fetch()).transferredBytes, BIG.length);
  assertWhole(folder);
});

test('right files that somebody put there are taken over, other ones are not overwritten', async (t) => {
  const { hub, folder, fetch } = await start(t);
  mkdirSync(folder);
  writeFileSync(join(folder, 'big.bin'), BIG);
  await fetch();
  assert.equal(hub.sentOf['big.bin'], undefined);

  const other = await start(t);
  mkdirSync(other.folder);
  writeFileSync(join(other.folder, 'config.json'), 'mine');
  await assert.rejects(other.fetch(), trawlError('OUTPUT_NOT_WRITABLE', /config\.json is there already/));
  assert.equal(readFileSync(join(other.folder, 'config.json'), 'utf8'), 'mine');
});

test('a folder of one repository is not used for another', async (t) => {
  const { fetch } = await start(t);
  await fetch();
  const { hub } = await start(t, { ...CONTENT, name: 'org/other' });
  const settings = { endpoint: hub.endpoint, token: undefined, offline: false };
  await assert.rejects(
    fetch({ settings, repository: { type: 'model', name: 'org/other' } }),
    trawlError('OUTPUT_NOT_WRITABLE', /holds files of org\/some-model, not of org\/other/),
  );
});

test('a dataset comes from its own address', async (t) => {
  const content: HubRepositoryContent = { ...CONTENT, type: 'dataset', name: 'org/corpus' };
  const { folder, fetch } = await start(t, content);
  await fetch();
  assertWhole(folder, content);
});

test('a second download into a folder is refused while the first runs', async (t) => {
  const { folder, fetch } = await start(t);
  mkdirSync(folder);
  const lock = FileLock.acquire(join(folder, '.trawl-download.lock'), 'exclusive')!;
  await assert.rejects(fetch(), trawlError('DOWNLOAD_LOCKED', /Another process/));
  lock.release();
  await fetch();
});

test('space is looked at before anything is fetched', async (t) => {
  const { hub, fetch } = await start(t);
  await assert.rejects(fetch({ reserveBytes: () => 2 ** 52 }), trawlError('DISK_FULL', /are needed in .* are free/));
  assert.equal(hub.sentBytes, 0);
});

test('offline nothing is asked for, and the error says why', async (t) => {
  const { hub, fetch } = await start(t);
  await assert.rejects(
    fetch({ settings: { endpoint: hub.endpoint, token: undefined, offline: true } }),
    trawlError('HUB_OFFLINE', /HF_HUB_OFFLINE/),
  );
  assert.equal(hub.requests.length, 0);
});

test('a folder that cannot be made is an error of the output', async (t) => {
  const { folder, fetch } = await start(t);
  writeFileSync(folder, 'a file');
  await assert.rejects(fetch(), trawlError('OUTPUT_NOT_WRITABLE'));
});

test('a record that was spoilt costs a check and no download', async (t) => {
  const { hub, folder, fetch } = await start(t);
  for (const text of [
    '',
    '{',
    '[]',
    'null',
    '{"version": 1, "repository": "org/some-model", "finished": {"big.bin": 3}, "partial": {}}',
  ]) {
    await fetch();
    hub.sentBytes = 0;
    writeFileSync(join(folder, '.trawl-download.json'), text);
    await fetch();
    assert.equal(hub.sentBytes, 0, text);
  }
});

test('patterns choose files as huggingface_hub does', async (t) => {
  const { folder, fetch } = await start(t);
  const { files } = await fetch({ select: (all) => matchingFiles(all, ['*.txt', 'config.json'], ['empty*']) });
  assert.deepEqual(files.map(({ path }) => path).sort(), ['config.json', 'deep/er/name with spaces & ünïcödé #1?.txt']);
  assert.ok(!existsSync(join(folder, 'big.bin')));
  const of = (...patterns: string[]) =>
    matchingFiles(
      ['a.json', 'b/a.json', 'b/c/x.bin', 'b.c'].map((path) => ({
        path,
        bytes: 0,
        hash: { algorithm: 'sha256', value: '' },
      })),
      patterns,
    ).map(({ path }) => path);
  assert.deepEqual(of('b/'), ['b/a.json', 'b/c/x.bin']);
  assert.deepEqual(of('?.json'), ['a.json']);
  assert.deepEqual(of('b.c'), ['b.c']);
  assert.deepEqual(of('[a].json'), []);
  assert.deepEqual(of(), []);
});
