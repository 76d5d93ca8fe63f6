import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type DownloadOptions, type DownloadProgress, downloadRepository } from '../../hub/download-repository.ts';
import { matchingFiles } from '../../hub/file-patterns.ts';
import { FileLock } from '../../src/file-lock.ts';
import { commitOf, type HubRepositoryContent, HubServer } from '../helpers/hub-server.ts';
import { seededBytes } from '../helpers/seeded-bytes.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

const BIG = seededBytes(7, 300_000);
const CONTENT: HubRepositoryContent = {
  name: 'org/some-model',
  refs: ['v1', 'refs/pr/1'],
  files: {
    'config.json': Buffer.from('{"a": 1}'),
    'empty.txt': Buffer.alloc(0),
    'big.bin': BIG,
    'deep/er/name with spaces & ünïcödé #1?.txt': Buffer.from('text'),
    'exactly.bin': seededBytes(8, 65_536),
  },
};

const TOTAL = Object.values(CONTENT.files).reduce((sum, bytes) => sum + bytes.length, 0);

interface Case {
  readonly hub: HubServer;
  readonly folder: string;
  fetch(options?: Partial<DownloadOptions>): ReturnType<typeof downloadRepository>;
}

async function start(t: TestContext, content: HubRepositoryContent = CONTENT): Promise<Case> {
  const hub = await HubServer.start(content);
  t.after(() => hub.close());
  const folder = join(await tempFolder(t), 'into');
  return {
    hub,
    folder,
    fetch: (options = {}) =>
      downloadRepository({
        repository: { type: content.type ?? 'model', name: content.name },
        into: folder,
        settings: { endpoint: hub.endpoint, token: undefined, offline: false },
        retry: { firstDelayMs: 1, longestDelayMs: 2, attempts: 4 },
        stallMs: 5000,
        ...options,
      }),
  };
}

function assertWhole(folder: string, content: HubRepositoryContent = CONTENT): void {
  for (const [path, bytes] of Object.entries(content.files)) {
    assert.ok(readFileSync(join(folder, path)).equals(bytes), path);
    assert.ok(!existsSync(join(folder, `${path}.partial`)), `${path}.partial is left`);
  }
}

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

test('a connection that breaks off repeatedly is resumed where it ended', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 80_000, breaks: 3 };
  const notices: string[] = [];
  const { transferredBytes } = await fetch({ onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.equal(transferredBytes, TOTAL);
  const begins = hub.requests.flatMap(({ cdn, range }) => (cdn && range ? [Number(/\d+/.exec(range)![0])] : []));
  assert.equal(begins.length, 3);
  assert.ok(begins[0]! > 0 && begins[1]! > begins[0]! && begins[2]! > begins[1]!, begins.join());
  assert.equal(notices.length, 3);
  assert.match(notices[0]!, /^big\.bin: .*; trying again in 0\.0 s$/);
});

test('a server that breaks off for ever is given up, and the next run fetches only the rest', async (t) => {
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

test('a stalled transfer is broken off and resumed', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { stallAfter: 100_000, stalls: 1 };
  const notices: string[] = [];
  await fetch({ stallMs: 200, onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.match(notices.join('\n'), /big\.bin: nothing came for 0\.2 s/);
});

test('a slow transfer that goes on is not a stall', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { pauseMs: 60, pieceBytes: 50_000 };
  const notices: string[] = [];
  await fetch({ stallMs: 2000, onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.deepEqual(notices, []);
});

for (const [name, wrong] of [
  ['another content of the same length', seededBytes(9, BIG.length)],
  ['a shorter file', BIG.subarray(0, 1000)],
  ['a longer file', Buffer.concat([BIG, Buffer.from('more')])],
] as const) {
  test(`${name} than the hub has is refused and not kept`, async (t) => {
    const { hub, folder, fetch } = await start(t);
    hub.behaviour['big.bin'] = { content: Buffer.from(wrong) };
    await assert.rejects(fetch(), trawlError('DOWNLOAD_CORRUPT', /big\.bin/));
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

test('a server that knows no ranges makes the file come from its beginning', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 100_000, breaks: 1, ignoreRange: true };
  await fetch();
  assertWhole(folder);
  assert.equal(hub.sentOf['big.bin'], BIG.length + 100_000);
});

test('a part that is not the one asked for is not appended', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 100_000, breaks: 1, wrongRange: true };
  await fetch();
  assertWhole(folder);
});

test('a file whose ETag changed between two attempts begins anew', async (t) => {
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

test('parts of two contents under one ETag do not pass: the file begins anew', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { content: seededBytes(9, BIG.length), etag: '"same"', breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 } }), trawlError('HUB_UNREACHABLE'));
  hub.behaviour['big.bin'] = { etag: '"same"' };
  await fetch();
  assertWhole(folder);
});

test('a branch that moved between two runs: changed files come anew, others stay, vanished ones go with prune', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 }, concurrency: 1 }), trawlError('HUB_UNREACHABLE'));
  delete hub.behaviour['big.bin'];
  await fetch();
  const { 'empty.txt': _, ...others } = CONTENT.files;
  const moved = { ...CONTENT, files: { ...others, 'big.bin': seededBytes(10, 200_000) } };
  hub.replace(moved);
  hub.sentBytes = 0;
  const { commit } = await fetch({ prune: true });
  assert.equal(commit, commitOf(moved));
  assert.equal(hub.sentBytes, 200_000);
  assertWhole(folder, moved);
  assert.ok(!existsSync(join(folder, 'empty.txt')));
});

test('a partial file of an older commit is not continued', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { breakAfter: 50_000, breaks: 1000 };
  await assert.rejects(fetch({ retry: { attempts: 1 } }), trawlError('HUB_UNREACHABLE'));
  const moved = { ...CONTENT, files: { ...CONTENT.files, 'big.bin': seededBytes(10, 200_000) } };
  hub.replace(moved);
  delete hub.behaviour['big.bin'];
  hub.sentOf['big.bin'] = 0;
  await fetch();
  assertWhole(folder, moved);
  assert.equal(hub.sentOf['big.bin'], 200_000);
});

test('503 with Retry-After, 429 and 500 are repeated, for the list and for files', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.apiRefusals.push({ status: 429, headers: { 'retry-after': '0' } }, { status: 500 });
  hub.behaviour['big.bin'] = { refusals: [{ status: 503, headers: { 'retry-after': '0' } }, { status: 502 }] };
  const notices: string[] = [];
  await fetch({ onNotice: (text) => notices.push(text) });
  assertWhole(folder);
  assert.equal(notices.length, 4);
});

test('Retry-After is waited for, and one that is too long is not', async (t) => {
  const { hub, fetch } = await start(t);
  const notices: string[] = [];
  hub.apiRefusals.push({ status: 503, headers: { 'retry-after': '1' } });
  await fetch({ onNotice: (text) => notices.push(text) });
  assert.deepEqual(notices, ['the list of org/some-model: the server answers 503; trying again in 1.0 s']);
  hub.apiRefusals.push({ status: 429, headers: { 'retry-after': '3600' } });
  await assert.rejects(fetch(), trawlError('HUB_UNREACHABLE', /the server asks to wait 3600 s/));
});

test('nobody listening is an error that names the address, after the attempts', async (t) => {
  const { hub, fetch } = await start(t);
  await hub.close();
  await assert.rejects(fetch(), trawlError('HUB_UNREACHABLE', /ECONNREFUSED.*4 attempts/));
});

test('an abort keeps what has arrived', async (t) => {
  const { hub, folder, fetch } = await start(t);
  hub.behaviour['big.bin'] = { pauseMs: 5, pieceBytes: 10_000 };
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

for (const path of ['../outside', '/etc/x', 'a/../../x', 'a\\..\\x', 'C:/x', 'a//b', './x', 'a\u0000b', '']) {
  test(`a listing with the path ${JSON.stringify(path)} is refused before anything is written`, async (t) => {
    const { hub, folder, fetch } = await start(t);
    hub.extraEntries.push({ type: 'file', path, size: 4, oid: 'a'.repeat(40) });
    await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /does not stay inside/));
    assert.ok(!existsSync(folder));
  });
}

for (const [name, entry, message] of [
  ['a negative size', { type: 'file', path: 'x', size: -1, oid: 'a'.repeat(40) }, /no usable size/],
  ['a size beyond 2^53', { type: 'file', path: 'x', size: 1e300, oid: 'a'.repeat(40) }, /no usable size/],
  ['no checksum', { type: 'file', path: 'x', size: 1 }, /no usable size/],
  ['a path twice', { type: 'file', path: 'big.bin', size: 1, oid: 'a'.repeat(40) }, /twice/],
  [
    'a name of the bookkeeping',
    { type: 'file', path: '.trawl-download.json', size: 1, oid: 'a'.repeat(40) },
    /uses? themselves/,
  ],
  [
    'the name of a partial file',
    { type: 'file', path: 'big.bin.partial', size: 1, oid: 'a'.repeat(40) },
    /uses? themselves/,
  ],
] as const) {
  test(`a listing with ${name} is refused`, async (t) => {
    const { hub, fetch } = await start(t);
    hub.extraEntries.push(entry);
    await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', message));
  });
}

for (const [name, headers, body] of [
  ['a page of a portal', { 'content-type': 'text/html' }, '<html>Log in</html>'],
  ['no commit', { 'content-type': 'application/json' }, '{"id": "org/some-model"}'],
  ['null', { 'content-type': 'application/json' }, 'null'],
] as const) {
  test(`${name} in place of the API's answer is named`, async (t) => {
    const { hub, fetch } = await start(t);
    hub.apiRefusals.push({ status: 200, headers, body });
    await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /Is HF_ENDPOINT the address of a hub/));
  });
}

test('a revision is a branch, a tag, a pull request or a commit, and it is told when there is none', async (t) => {
  const { fetch } = await start(t);
  for (const revision of ['main', 'v1', 'refs/pr/1', commitOf(CONTENT)]) {
    assert.equal((await fetch({ revision })).commit, commitOf(CONTENT));
  }
  await assert.rejects(fetch({ revision: 'v9' }), trawlError('HUB_NOT_FOUND', /no revision "v9"/));
});

test('a repository that is not there, and names that cannot be one', async (t) => {
  const { fetch, hub } = await start(t);
  await assert.rejects(
    fetch({ repository: { type: 'model', name: 'org/nothing' } }),
    trawlError('HUB_NOT_FOUND', /or it is private.*set HF_TOKEN/),
  );
  await assert.rejects(fetch({ repository: { type: 'dataset', name: CONTENT.name } }), trawlError('HUB_NOT_FOUND'));
  hub.requests.length = 0;
  for (const name of ['plain', 'a/b/c', '../x', 'org/..', 'org/a b', 'org/', '/x', 'datasets/a/b', 'org/a?x=1']) {
    await assert.rejects(fetch({ repository: { type: 'model', name } }), trawlError('USAGE'), name);
  }
  assert.equal(hub.requests.length, 0);
});

test('a dataset comes from its own address', async (t) => {
  const content: HubRepositoryContent = { ...CONTENT, type: 'dataset', name: 'org/corpus' };
  const { folder, fetch } = await start(t, content);
  await fetch();
  assertWhole(folder, content);
});

test('a file that vanished after the listing is named', async (t) => {
  const { hub, fetch } = await start(t);
  hub.extraEntries.push({ type: 'file', path: 'gone.txt', size: 4, oid: 'a'.repeat(40) });
  await assert.rejects(fetch(), trawlError('HUB_NOT_FOUND', /no file "gone\.txt"/));
});

test('gated and private repositories want a token, and the message tells the way', async (t) => {
  for (const kind of ['gated', 'private'] as const) {
    const { hub, folder, fetch } = await start(t, { ...CONTENT, [kind]: true });
    const with_ = (token: string | undefined) => ({ settings: { endpoint: hub.endpoint, token, offline: false } });
    await assert.rejects(
      fetch(),
      kind === 'gated'
        ? trawlError('HUB_ACCESS_DENIED', /is gated.*Accept its terms at .*org\/some-model.*HF_TOKEN/)
        : trawlError('HUB_NOT_FOUND', /for a private one set HF_TOKEN/),
    );
    const refused = await fetch(with_('wrong-secret')).then(
      () => undefined,
      (error: Error) => error,
    );
    trawlError('HUB_ACCESS_DENIED', /does not accept the token/)(refused);
    assert.doesNotMatch(refused!.message, /wrong-secret/);
    await fetch(with_(hub.token));
    assertWhole(folder);
  }
});

test('the token goes to the hub alone, not to where a redirect or a link of a page leads', async (t) => {
  const { hub, folder, fetch } = await start(t);
  const settings = { endpoint: hub.endpoint, token: hub.token, offline: false };
  await fetch({ settings });
  assertWhole(folder);
  assert.ok(hub.requests.some(({ cdn }) => cdn));
  for (const { cdn, authorization } of hub.requests) {
    assert.equal(authorization, cdn ? undefined : `Bearer ${hub.token}`);
  }
  const elsewhere = await HubServer.start(CONTENT);
  t.after(() => elsewhere.close());
  hub.linkOrigin = elsewhere.endpoint;
  await fetch({ settings });
  assert.ok(elsewhere.requests.length > 0);
  assert.ok(elsewhere.requests.every(({ authorization }) => authorization === undefined));
});

test('a redirect that goes round, or leads to another protocol, ends', async (t) => {
  const { hub, fetch } = await start(t);
  hub.apiRefusals.push(
    ...Array.from({ length: 12 }, () => ({
      status: 302,
      headers: { location: `${hub.endpoint}/api/models/org/some-model/revision/main` },
    })),
  );
  await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /more than 10 times/));
  hub.apiRefusals.splice(0, 12, { status: 302, headers: { location: 'file:///etc/passwd' } });
  await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /not followed/));
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
