import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { smallDisk } from '../../helpers/small-disk.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { type Json, withoutWords } from '../../server/elasticsearch/elasticsearch-server.ts';
import { MANUAL, ndjson } from '../../server/elasticsearch/writable-server.ts';
import { runTrawl, type Served, serveWith } from '../run-trawl.ts';

const skip = withoutWords;
const ELASTICSEARCH = ['--dialect', 'elasticsearch'];

function serve(t: TestContext, folder: string, ...more: readonly string[]): Promise<Served> {
  return serveWith(t, [...ELASTICSEARCH, '--writable', folder, '--quiet', ...more]);
}

async function send(url: string, method: string, body?: string | object): Promise<{ status: number; json: Json }> {
  const response = await fetch(url, {
    method,
    ...(body === undefined
      ? {}
      : {
          headers: { 'content-type': 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
  });
  return { status: response.status, json: (await response.json()) as Json };
}

async function count(url: string): Promise<number> {
  const { json } = await send(`${url}/ix/_count`, 'POST');
  return Number(json.count);
}

async function countReaches(url: string, expected: number): Promise<void> {
  while ((await count(url)) !== expected) await new Promise((resolve) => setTimeout(resolve, 50));
}

test('what a bulk answered survives a server that is killed before the refresh, during it and after it', {
  skip,
}, async (t) => {
  const folder = join(await tempFolder(t), 'writable');
  const bulk = (from: number): string =>
    ndjson(
      ...Array.from({ length: 500 }, (_, i) => [
        { index: { _id: String(from + i) } },
        { text: `text ${from + i}` },
      ]).flat(),
    );
  const kill = async ({ child }: Served): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  let server = await serve(t, folder);
  assert.equal((await send(`${server.url}/ix`, 'PUT', MANUAL)).status, 200);
  assert.equal((await send(`${server.url}/ix/_bulk`, 'POST', bulk(0))).json.errors, false);
  await kill(server);
  // The next start refreshes on its own.
  server = await serve(t, folder);
  await countReaches(server.url, 500);
  assert.equal((await send(`${server.url}/ix/_bulk`, 'POST', bulk(500))).json.errors, false);
  const refresh = send(`${server.url}/ix/_refresh`, 'POST').catch(() => undefined);
  while (readdirSync(join(folder, 'ix')).filter((name) => name.startsWith('index-')).length < 2) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await kill(server);
  await refresh;
  server = await serve(t, folder);
  await countReaches(server.url, 1_000);
  assert.equal((await send(`${server.url}/ix/_bulk?refresh=true`, 'POST', bulk(1_000))).json.errors, false);
  await kill(server);
  server = await serve(t, folder);
  assert.equal(await count(server.url), 1_500);
  const left = readdirSync(join(folder, 'ix')).filter((name) => /^(?:index|refresh)-/.test(name));
  assert.equal(left.length, 1, left.join());
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
});

test('a full disk loses no document and says so, and searches find what they found before', { skip }, async (t) => {
  const folder = join(await tempFolder(t), 'writable');
  mkdirSync(folder);
  const disk = smallDisk(folder, 3_000);
  if ('missing' in disk) return t.skip(disk.missing);
  const server = await serve(t, folder);
  try {
    await fillDisk(server);
    const left = readdirSync(join(folder, 'ix')).filter((name) => /^(?:index|refresh)-/.test(name));
    assert.equal(left.length, 1, left.join());
  } finally {
    server.child.kill('SIGTERM');
    await server.ended;
    // A mounted folder cannot be removed.
    disk.unmount();
  }
});

async function fillDisk({ url }: Served): Promise<void> {
  assert.equal((await send(`${url}/ix`, 'PUT', MANUAL)).status, 200);
  assert.equal((await send(`${url}/ix/_doc/0?refresh=true`, 'PUT', { text: 'first' })).status, 201);
  let stored = 1;
  let refused: Json | undefined;
  for (let i = 1; refused === undefined && i < 200; i++) {
    const { status, json } = await send(
      `${url}/ix/_bulk`,
      'POST',
      ndjson(
        { index: { _id: `a${i}` } },
        { text: 'x'.repeat(50_000) },
        { index: { _id: `b${i}` } },
        { text: 'y'.repeat(50_000) },
      ),
    );
    assert.equal(status, 200);
    if (json.errors === (false as unknown as Json)) stored += 2;
    else refused = json;
  }
  const items = refused!.items as unknown as { index: { status: number; error: { type: string; reason: string } } }[];
  for (const { index } of items) {
    assert.deepEqual([index.status, index.error.type], [429, 'cluster_block_exception']);
    assert.match(index.error.reason, /no space left on the disk.*None of the operations/);
    assert.doesNotMatch(index.error.reason, /\/tmp/);
  }
  const refresh = await send(`${url}/ix/_refresh`, 'POST');
  assert.equal(refresh.status, 429);
  assert.match(String(refresh.json.error!.reason), /No space is left.*Searches find what they found before/);
  assert.equal(await count(url), 1);
  assert.equal((await send(`${url}/ix/_doc/a1`, 'GET')).json.found, true);
  const last = (stored - 1) / 2;
  assert.equal((await send(`${url}/ix/_doc/b${last}`, 'GET')).json.found, true);
  assert.equal((await send(`${url}/ix/_doc/a${last + 1}`, 'GET')).json.found, false);
}

test('a folder has one server at a time', { skip }, async (t) => {
  const folder = await tempFolder(t);
  await serve(t, folder);
  const { code, stderr } = await runTrawl(['serve', '--writable', folder, ...ELASTICSEARCH, '--port', '0']);
  assert.equal(code, 1);
  assert.match(stderr, /another server has the folder.*\[BUILD_LOCKED\]/s);
});

test('--writable needs the interface of Elasticsearch, and BM25 alone', async (t) => {
  const folder = await tempFolder(t);
  for (const [args, reason] of [
    [[], /--writable needs an address with the interface of Elasticsearch/],
    [
      [...ELASTICSEARCH, '--mode', 'hybrid'],
      /--mode is hybrid, but the indexes of --writable are searched by BM25 alone/,
    ],
    [['--listen', '0=elasticsearch:mode=dense'], /--mode is dense/],
    [[...ELASTICSEARCH, '--filter', 'a = 1'], /A filter cannot be used with --writable/],
    [['--listen', '0=elasticsearch:filter=a = 1'], /A filter cannot be used with --writable/],
  ] as const) {
    const { code, stderr } = await runTrawl(['serve', '--writable', folder, '--port', '0', ...args]);
    assert.equal(code, 2, stderr);
    assert.match(stderr, reason);
  }
});

test('a writable folder whose definition is damaged is named', { skip }, async (t) => {
  const folder = await tempFolder(t);
  const { url, child, ended } = await serve(t, folder);
  await send(`${url}/ix`, 'PUT', MANUAL);
  child.kill('SIGTERM');
  await ended;
  writeFileSync(join(folder, 'ix', 'definition.json'), '{}');
  const { code, stderr } = await runTrawl(['serve', '--writable', folder, ...ELASTICSEARCH, '--port', '0']);
  assert.equal(code, 1);
  assert.match(stderr, /definition\.json: a field is missing or has a wrong value.*\[INDEX_MANIFEST_INVALID\]/s);
});
