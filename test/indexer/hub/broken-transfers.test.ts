import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TrawlError } from '../../../src/base/errors.ts';
import { commitOf } from '../../helpers/hub-server.ts';
import { seededBytes } from '../../helpers/seeded-bytes.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { assertWhole, BIG, CONTENT, start, TOTAL } from './downloads.ts';

test('a connection that breaks repeatedly is resumed at the byte where it broke', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 80_000, breaks: 3 };
  const notices: string[] = [];
  const { transferredBytes } = await fetch({ onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.equal(transferredBytes, TOTAL);
  // Without a range a request begins at 0, as after a break that discarded what was on its way.
  const begins = hub.requests
    .filter(({ cdn, url }) => cdn && url.includes('big.bin'))
    .map(({ range }) => Number(/\d+/.exec(range ?? '0')![0]));
  assert.equal(begins.length, 4);
  assert.deepEqual(
    begins,
    begins.toSorted((a, b) => a - b),
  );
  assert.ok(begins[3]! > 0, begins.join());
  assert.equal(notices.length, 3);
  assert.match(notices[0]!, /^big\.bin: .*; retrying in 0\.0 s$/);
});

test('a download fails after repeated broken connections, and the next run fetches only the missing bytes', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 10_000, breaks: 1000 };
  await assert.rejects(fetch(), trawlError('HUB_UNREACHABLE', /given up after 4 attempts.*run the same command again/));
  assert.ok(!existsSync(join(folder, 'big.bin')));
  const kept = readFileSync(join(folder, 'big.bin.partial')).length;
  assert.ok(kept > 0 && kept <= 40_000, `${kept} bytes are kept`);
  delete hub.behaviour['big.bin'];
  hub.sentOf['big.bin'] = 0;
  await fetch();
  assertWhole(folder);
  assert.equal(hub.sentOf['big.bin'], BIG.length - kept);
});

test('a stalled transfer is aborted and resumed', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { stallAfter: 100_000, stalls: 1 };
  const notices: string[] = [];
  await fetch({ stallMs: 200, onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.match(notices.join('\n'), /big\.bin: nothing arrived for 0\.2 s/);
});

test('a slow but steady transfer is not a stall', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { pauseMs: 60, chunkBytes: 50_000 };
  const notices: string[] = [];
  await fetch({ stallMs: 2000, onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.deepEqual(notices, []);
});

for (const [name, wrong, isOther] of [
  ['other content of the same length', seededBytes(9, BIG.length), true],
  ['a shorter file', BIG.subarray(0, 1000), false],
  ['a longer file', Buffer.concat([BIG, Buffer.from('more')]), false],
] as const) {
  test(`${name} than on the hub is refused and discarded`, async (t) => {
    const { hub, folder, fetch } = await start(t);
    hub.behaviour['big.bin'] = { content: Buffer.from(wrong) };
    await assert.rejects(fetch(), (error: TrawlError) => {
      assert.equal(error.details.target, isOther ? join(folder, 'big.bin') : undefined);
      return trawlError('DOWNLOAD_CORRUPT', /big\.bin/)(error);
    });
    assert.ok(!existsSync(join(folder, 'big.bin')));
    assert.ok(!existsSync(join(folder, 'big.bin.partial')));
    delete hub.behaviour['big.bin'];
    await fetch();
    assertWhole(folder);
  });
}

test('a small file is checked by its git hash', async (t) => {
  const { hub, fetch } = await start(t);
  hub.behaviour['config.json'] = { content: Buffer.from('{"a": 2}') };
  await assert.rejects(fetch(), trawlError('DOWNLOAD_CORRUPT', /config\.json has the git-sha1/));
});

test('without range support the file is downloaded from its beginning', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 100_000, breaks: 1, ignoreRange: true };
  await fetch();
  assertWhole(folder);
  assert.equal(hub.sentOf['big.bin'], BIG.length + 100_000);
});

test('a reply with another range than the requested one is not appended', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 100_000, breaks: 1, wrongRange: true };
  await fetch();
  assertWhole(folder);
});

test('a file whose ETag changed between two attempts starts over', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 100_000, breaks: 1000, etag: '"one"' };
  await assert.rejects(fetch({ retry: { attempts: 1 } }), trawlError('HUB_UNREACHABLE'));
  const kept = readFileSync(join(folder, 'big.bin.partial')).length;
  hub.behaviour['big.bin'] = { etag: '"two"' };
  hub.requests.length = 0;
  await fetch();
  assertWhole(folder);
  const request = hub.requests.find(({ url, cdn }) => cdn && url.includes('big.bin'))!;
  assert.deepEqual([request.range, request.ifRange], [`bytes=${kept}-`, '"one"']);
  assert.equal(hub.sentOf['big.bin'], BIG.length + 100_000);
});

test('parts of two contents under one ETag fail the hash, and the file starts over', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { content: seededBytes(9, BIG.length), etag: '"same"', breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 } }), trawlError('HUB_UNREACHABLE'));
  hub.behaviour['big.bin'] = { etag: '"same"' };
  await fetch();
  assertWhole(folder);
});

test('a partial file that has all bytes but another content starts over', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 } }), trawlError('HUB_UNREACHABLE'));
  writeFileSync(join(folder, 'big.bin.partial'), seededBytes(9, BIG.length));
  delete hub.behaviour['big.bin'];
  await fetch();
  assertWhole(folder);
});

test('after the branch has a new commit, only changed files are fetched, and prune deletes files it does not have', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 }, concurrency: 1 }), trawlError('HUB_UNREACHABLE'));
  delete hub.behaviour['big.bin'];
  await fetch();
  const { 'empty.txt': _, ...others } = CONTENT.files;
  const updated = { ...CONTENT, files: { ...others, 'big.bin': seededBytes(10, 200_000) } };
  hub.replace(updated);
  hub.sentBytes = 0;
  const { commit } = await fetch({ prune: true });
  assert.equal(commit, commitOf(updated));
  assert.equal(hub.sentBytes, 200_000);
  assertWhole(folder, updated);
  assert.ok(!existsSync(join(folder, 'empty.txt')));
});

test('a partial file of an older commit is not resumed', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 } }), trawlError('HUB_UNREACHABLE'));
  const updated = { ...CONTENT, files: { ...CONTENT.files, 'big.bin': seededBytes(10, 200_000) } };
  hub.replace(updated);
  delete hub.behaviour['big.bin'];
  hub.sentOf['big.bin'] = 0;
  await fetch();
  assertWhole(folder, updated);
  assert.equal(hub.sentOf['big.bin'], 200_000);
});

test('503 with Retry-After, 502, 429 and 500 are retried, for the listing and for files', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.apiRefusals.push({ status: 429, headers: { 'retry-after': '0' } }, { status: 500 });
  hub.behaviour['big.bin'] = { refusals: [{ status: 503, headers: { 'retry-after': '0' } }, { status: 502 }] };
  const notices: string[] = [];
  await fetch({ onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.equal(notices.length, 4);
});

test('the download waits as long as Retry-After says, and fails if that is too long', async (t) => {
  const { hub, fetch } = await start(t);
  const notices: string[] = [];
  hub.apiRefusals.push({ status: 503, headers: { 'retry-after': '1' } });
  await fetch({ onNotice: (text) => notices.push(text) });
  assert.deepEqual(notices, ['the list of org/some-model: the server replies 503; retrying in 1.0 s']);
  hub.apiRefusals.push({ status: 429, headers: { 'retry-after': '3600' } });
  await assert.rejects(fetch(), trawlError('HUB_UNREACHABLE', /the server asks to wait 3600 s/));
});

test('a refused connection fails after all attempts and names the address', async (t) => {
  const { hub, fetch } = await start(t);
  await hub.close();
  await assert.rejects(fetch(), trawlError('HUB_UNREACHABLE', /ECONNREFUSED.*4 attempts/));
});

test('an abort keeps the received bytes', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { pauseMs: 5, chunkBytes: 10_000 };
  const stop = new AbortController();
  await assert.rejects(
    fetch({
      signal: stop.signal,
      onProgress: ({ path, bytes }) => {
        if (path === 'big.bin' && bytes >= 100_000) stop.abort();
      },
    }),
    trawlError('CANCELLED'),
  );
  const kept = readFileSync(join(folder, 'big.bin.partial'));
  assert.ok(kept.length >= 100_000 && kept.equals(BIG.subarray(0, kept.length)));
  delete hub.behaviour['big.bin'];
  hub.sentOf['big.bin'] = 0;
  await fetch();
  assertWhole(folder);
  assert.equal(hub.sentOf['big.bin'], BIG.length - kept.length);
  await assert.rejects(fetch({ signal: AbortSignal.abort() }), trawlError('CANCELLED'));
});
