import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { commitOf } from '../../helpers/hub-server.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { CONTENT, start } from './downloads.ts';

for (const path of ['../outside', '/etc/x', 'a/../../x', 'a\\..\\x', 'C:/x', 'a//b', './x', 'a\u0000b', '']) {
  test(`a listing with the path ${JSON.stringify(path)} is refused before anything is written`, async (t) => {
    const { hub, folder, fetch } = await start(t);
    hub.extraEntries.push({ type: 'file', path, size: 4, oid: 'a'.repeat(40) });
    await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /is not a safe relative path/));
    assert.ok(!existsSync(folder));
  });
}

for (const [name, entry, message] of [
  ['a negative size', { type: 'file', path: 'x', size: -1, oid: 'a'.repeat(40) }, /no usable size/],
  ['a size beyond 2^53', { type: 'file', path: 'x', size: 1e300, oid: 'a'.repeat(40) }, /no usable size/],
  ['no checksum', { type: 'file', path: 'x', size: 1 }, /no usable size/],
  ['a path twice', { type: 'file', path: 'big.bin', size: 1, oid: 'a'.repeat(40) }, /twice/],
  [
    'the name of the download record',
    { type: 'file', path: '.trawl-download.json', size: 1, oid: 'a'.repeat(40) },
    /use for their own files/,
  ],
  [
    'the name of a partial file',
    { type: 'file', path: 'big.bin.partial', size: 1, oid: 'a'.repeat(40) },
    /use for their own files/,
  ],
] as const) {
  test(`a listing with ${name} is refused`, async (t) => {
    const { hub, fetch } = await start(t);
    hub.extraEntries.push(entry);
    await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', message));
  });
}

for (const [name, headers, body] of [
  ['a login page', { 'content-type': 'text/html' }, '<html>Log in</html>'],
  ['a repository without a commit', { 'content-type': 'application/json' }, '{"id": "org/some-model"}'],
  ['null', { 'content-type': 'application/json' }, 'null'],
] as const) {
  test(`if the API answers with ${name}, the error advises to check HF_ENDPOINT`, async (t) => {
    const { hub, fetch } = await start(t);
    hub.apiRefusals.push({ status: 200, headers, body });
    await assert.rejects(fetch(), trawlError('HUB_REPLY_INVALID', /Check that HF_ENDPOINT is the address of a hub/));
  });
}

test('a revision is a branch, a tag, a pull request or a commit, and an unknown one is an error', async (t) => {
  const { fetch } = await start(t);
  for (const revision of ['main', 'v1', 'refs/pr/1', commitOf(CONTENT)]) {
    assert.equal((await fetch({ revision })).commit, commitOf(CONTENT));
  }
  await assert.rejects(fetch({ revision: 'v9' }), trawlError('HUB_NOT_FOUND', /no revision "v9"/));
});

test('an unknown repository and invalid repository names are errors', async (t) => {
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

test('the error names a file that was deleted after the listing', async (t) => {
  const { hub, fetch } = await start(t);
  hub.extraEntries.push({ type: 'file', path: 'gone.txt', size: 4, oid: 'a'.repeat(40) });
  await assert.rejects(fetch(), trawlError('HUB_NOT_FOUND', /no file "gone\.txt"/));
});
