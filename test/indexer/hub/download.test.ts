import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DownloadProgress } from '../../../indexer/hub/download-repository.ts';
import { matchingFiles } from '../../../indexer/hub/select-files.ts';
import { FileLock } from '../../../src/base/system/file-lock.ts';
import { commitOf, type HubRepositoryContent } from '../../helpers/hub-server.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { assertWhole, BIG, CONTENT, start, TOTAL } from './downloads.ts';

test('all files of one commit are downloaded from a listing of several pages and a second origin', async (t) => {
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

test('a second run transfers nothing but a damaged file', async (t) => {
  const { hub, folder, fetch } = await start(t);
  await fetch();
  hub.sentBytes = 0;
  assert.equal((await fetch()).transferredBytes, 0);
  assert.equal(hub.sentBytes, 0);
  const damaged = Buffer.from(BIG);
  damaged[1000]! ^= 1;
  writeFileSync(join(folder, 'big.bin'), damaged);
  assert.equal((await fetch()).transferredBytes, BIG.length);
  assertWhole(folder);
});

test('existing correct files are kept, and other existing files are not overwritten', async (t) => {
  const { hub, folder, fetch } = await start(t);
  mkdirSync(folder);
  writeFileSync(join(folder, 'big.bin'), BIG);
  await fetch();
  assert.equal(hub.sentOf['big.bin'], undefined);

  const other = await start(t);
  mkdirSync(other.folder);
  writeFileSync(join(other.folder, 'config.json'), 'mine');
  await assert.rejects(other.fetch(), trawlError('OUTPUT_NOT_WRITABLE', /config\.json already exists/));
  assert.equal(readFileSync(join(other.folder, 'config.json'), 'utf8'), 'mine');
});

test('a folder with files of another repository is refused', async (t) => {
  const { fetch } = await start(t);
  await fetch();
  const { hub } = await start(t, { ...CONTENT, name: 'org/other' });
  const settings = { endpoint: hub.endpoint, token: undefined, offline: false };
  await assert.rejects(
    fetch({ settings, repository: { type: 'model', name: 'org/other' } }),
    trawlError('OUTPUT_NOT_WRITABLE', /has files of org\/some-model, not of org\/other/),
  );
});

test('a dataset is downloaded from the path of datasets', async (t) => {
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

test('free space is checked before anything is fetched', async (t) => {
  const { hub, fetch } = await start(t);
  await assert.rejects(
    fetch({ reserveBytes: () => 2 ** 52 }),
    trawlError('DISK_FULL', /needs .* but only .* are free/),
  );
  assert.equal(hub.sentBytes, 0);
});

test('in offline mode no request is sent, and the error names the variable that set it', async (t) => {
  const { hub, fetch } = await start(t);
  await assert.rejects(
    fetch({ settings: { endpoint: hub.endpoint, token: undefined, offline: true } }),
    trawlError('HUB_OFFLINE', /HF_HUB_OFFLINE/),
  );
  assert.equal(hub.requests.length, 0);
});

test('a folder that cannot be created is OUTPUT_NOT_WRITABLE', async (t) => {
  const { folder, fetch } = await start(t);
  writeFileSync(folder, 'a file');
  await assert.rejects(fetch(), trawlError('OUTPUT_NOT_WRITABLE'));
});

test('after damage to the download record the files are hashed again and not downloaded again', async (t) => {
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

test('patterns select files as in huggingface_hub', async (t) => {
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
