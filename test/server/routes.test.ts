import assert from 'node:assert/strict';
import { Agent, request as httpRequest, type RequestOptions } from 'node:http';
import { test } from 'node:test';
import { deflateSync, gzipSync } from 'node:zlib';
import { Check } from 'typebox/schema';
import { TrawlError } from '../../src/base/errors.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import { HEALTH_OPERATIONS } from '../../src/server/routes/health.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, post, postTo } from './build.ts';

test('another method on a known route is a 405 with Allow', async (t) => {
  const app = build(t);
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD'] as const) {
    const response = await app.inject({ method, url: '/retrieve' });
    assert.equal(response.statusCode, 405, method);
    assert.equal(response.headers.allow, 'POST, OPTIONS');
    if (method === 'HEAD') continue;
    assert.equal(response.json<{ detail: string }>().detail, 'Method Not Allowed');
    assert.equal(errorOf(response.json()).code, 'METHOD_NOT_ALLOWED');
  }
  const posted = await app.inject({ method: 'POST', url: '/readyz', payload: { a: 1 } });
  assert.deepEqual([posted.statusCode, posted.headers.allow], [405, 'GET, HEAD, OPTIONS']);
});

test('OPTIONS lists the methods and grants other origins nothing', async (t) => {
  const response = await build(t).inject({
    method: 'OPTIONS',
    url: '/retrieve',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  });
  assert.deepEqual([response.statusCode, response.headers.allow], [204, 'POST, OPTIONS']);
  assert.equal(response.headers['access-control-allow-origin'], undefined);
});

test('an unknown path is a 404 for every method and body', async (t) => {
  const app = build(t);
  for (const url of [
    '/nope',
    '/retrieve/x',
    '//evil.example/',
    '/%zz',
    '/retrieve%2f',
    '/..%2f',
    '/Retrieve',
    '/web/',
  ]) {
    for (const method of ['GET', 'POST'] as const) {
      const response = await app.inject({ method, url, ...(method === 'POST' ? { payload: 'no json' } : {}) });
      assert.equal(response.statusCode, 404, `${method} ${url}`);
      assert.equal(errorOf(response.json()).code, 'NOT_FOUND');
      assert.equal(response.json<{ detail: string }>().detail, 'Not Found');
    }
  }
});

test('a trailing slash is redirected with 307, which keeps method and body', async (t) => {
  const app = build(t);
  const posted = await app.inject({ method: 'POST', url: '/retrieve/?a=1', payload: {} });
  assert.deepEqual([posted.statusCode, posted.headers.location], [307, '/retrieve?a=1']);
  const got = await app.inject('/readyz/');
  assert.deepEqual([got.statusCode, got.headers.location], [307, '/readyz']);
});

test('an invalid body is a 422 with the position and without its content', async (t) => {
  const app = build(t);
  const bodies = ['{', 'secret', '{"queries":["a"],}', '{"queries":["secret" "b"]}', "{'queries':[]}", 'NaN', '1 2'];
  for (const body of [...bodies, Buffer.from([0x7b, 0xff]), Buffer.from('{"queries":["\xff"]}', 'latin1')]) {
    const { status, json, text } = await post(app, body);
    assert.equal(status, 422, String(body));
    assert.equal(errorOf(json).code, 'INVALID_JSON');
    assert.equal((errorOf(json).detail as { type: string }[])[0]?.type, 'json_invalid');
    assert.ok(!text.includes('secret'));
  }
});

test("the message for an invalid body has the position, and JSON's spelling of Python's words", async (t) => {
  const app = build(t);
  for (const [body, position, words] of [
    ['{"queries": ["True"], "return_scores": True}', 39, 'in JSON, True is true'],
    [`{"queries": ["${'long '.repeat(200)}"], "topk": None}`, 1026, 'in JSON, None is null'],
    ['{"queries": ["a"], "topk": NaN}', 27, 'in JSON, NaN is null'],
    ["{'queries': []}", 1, 'JSON strings have double quotes'],
    ['{"queries": ["a"', 16, 'ends too early'],
    ['{"queries": ["a" "b"]}', 17, 'unexpected character at 17'],
  ] as const) {
    const { json } = await post(app, body);
    const { detail, message } = errorOf(json) as { detail: { loc: unknown[] }[]; message: string };
    assert.deepEqual(detail[0]?.loc, ['body', position], body);
    assert.ok(message.includes(words), message);
  }
});

test('a body nested a million levels deep is a 422, not a crash', async (t) => {
  const app = build(t);
  const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000);
  assert.equal((await post(app, deep)).status, 422);
  assert.equal((await post(app, `{"queries":${deep}}`)).status, 422);
  assert.equal((await post(app, `{"queries":["a"],"x":${deep}}`)).status, 422);
});

test('JSON content types, or none, are accepted; all others are a 415 that names the header to send', async (t) => {
  const app = build(t);
  const body = '{"queries":["a"]}';
  for (const type of [
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/x+json',
  ]) {
    assert.equal((await post(app, body, { 'content-type': type })).status, 200, type);
  }
  assert.equal((await post(app, body, {})).status, 200, 'no content type');
  assert.equal((await post(app, `\ufeff${body}`)).status, 200, 'a byte order mark');
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'nonsense', 'a/b;;=']) {
    const { status, json } = await post(app, body, { 'content-type': type });
    assert.equal(status, 415, type);
    assert.equal(errorOf(json).code, 'UNSUPPORTED_MEDIA_TYPE');
    assert.match(errorOf(json).message, /application\/json/);
  }
});

test('a body in gzip or deflate is read on every route, and other codings are a 415', async (t) => {
  const app = build(t, undefined, { mcp: { hosts: [] }, dialects: ['elasticsearch'] });
  const bodies = {
    '/retrieve': { queries: ['a'] },
    '/v1/search': { queries: ['a'] },
    '/v1/embeddings': { input: ['a'] },
    '/admin/indexes/fake-sample/reload': {},
    '/mcp': { jsonrpc: '2.0', id: 1, method: 'ping' },
    '/_count': { query: { match_all: {} } },
  };
  for (const [url, body] of Object.entries(bodies)) {
    const ask = (sent: unknown, coding: string) => {
      const headers = { 'content-type': 'application/json', 'content-encoding': coding, host: 'localhost' };
      return postTo(app, url, sent, headers);
    };
    const text = JSON.stringify(body);
    const plain = await ask(body, 'identity');
    const compressed = {
      gzip: gzipSync(text),
      GZIP: gzipSync(text),
      'x-gzip': gzipSync(text),
      deflate: deflateSync(text),
    };
    for (const [coding, sent] of Object.entries(compressed)) {
      const { status } = await ask(sent, coding);
      assert.equal(status, plain.status, `${coding} ${url}`);
    }
    for (const coding of ['br', 'zstd', 'identity, gzip', 'x-nonsense']) {
      const { status, text: refused, headers: answered } = await ask(gzipSync(text), coding);
      const expected = url === '/_count' ? 406 : 415;
      assert.deepEqual([status, answered['accept-encoding']], [expected, 'gzip, deflate'], `${coding} ${url}`);
      assert.match(refused, /Send the body as gzip/);
    }
    for (const broken of [text, gzipSync(text).subarray(0, -6)]) {
      const { status, text: refused } = await ask(Buffer.from(broken), 'gzip');
      assert.ok(status === 400 || status === 422, `${status} ${url}`);
      assert.match(refused, /cannot be decompressed/);
    }
  }
});

test('a compressed body larger than the limit is a 413, and its connection stays usable', async (t) => {
  const app = build(t, undefined, { maxBodyBytes: 1_000_000 });
  const url = await listen(app, { host: '127.0.0.1', port: 0 });
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const send = (body: Buffer): Promise<number> => statusOf(`${url}/retrieve`, { method: 'POST', headers, agent }, body);
  const bomb = gzipSync(JSON.stringify({ queries: ['a'.repeat(20_000_000)] }));
  assert.ok(bomb.length < 1_000_000);
  assert.equal(await send(bomb), 413);
  assert.equal(await send(gzipSync(JSON.stringify({ queries: ['a'] }))), 200);
});

test('a broken compressed body that nobody reads does not end the process', async (t) => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const app = build(t, new FakeRetriever({ before: () => released }));
  const url = await listen(app, { host: '127.0.0.1', port: 0 });
  const body = Buffer.from('not gzip');
  const headers = { 'content-encoding': 'gzip', 'content-length': body.length };
  const unread = statusOf(`${url}/search?query=a`, { method: 'HEAD', headers }, body);
  // By then the other body has been found broken, too.
  assert.equal(await statusOf(`${url}/retrieve`, { method: 'POST', headers }, body), 422);
  release();
  assert.equal(await unread, 200);
});

function statusOf(url: string, options: RequestOptions, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!));
    });
    request.on('error', reject).end(body);
  });
}

test('/livez answers from the start, /readyz when the index is open', async (t) => {
  const slot = new IndexSlot('fake-sample');
  const holder = new IndexRegistry([slot]);
  const app = build(t, holder, { holdMs: 0 });
  const status = async (url: string): Promise<number> => (await app.inject(url)).statusCode;
  assert.deepEqual([await status('/livez'), await status('/readyz'), await status('/')], [200, 503, 200]);

  const doing = { stage: 'reading', doing: 'reading the index in: 40 %', done: 40, total: 100 } as const;
  slot.report(doing);
  const starting = await app.inject('/readyz');
  assert.deepEqual(starting.json(), {
    status: 'starting',
    progress: 'reading the index in: 40 %',
    indexes: [{ name: 'fake-sample', ...doing }],
  });
  assert.equal(starting.headers['retry-after'], '2');
  const early = await post(app, { queries: ['a'] });
  assert.deepEqual([early.status, early.headers['retry-after']], [503, '2']);
  assert.equal(errorOf(early.json).code, 'NOT_READY');
  assert.match(errorOf(early.json).message, /40 %/);

  holder.ready(new FakeRetriever());
  const ready = (await app.inject('/readyz')).json<Record<string, unknown>>();
  assert.deepEqual([ready.status, ready.index, ready.rows, ready.dimension], ['ready', 'fake-sample', 5, 4]);
  assert.deepEqual([ready.metric, ready.model, ready.default_topk], ['inner-product', 'fake-encoder', 3]);
  assert.equal((await post(app, { queries: ['a'] })).status, 200);

  holder.stop();
  const stopping = (await app.inject('/readyz')).json<Record<string, unknown>>();
  assert.deepEqual([stopping.status, stopping.progress], ['stopping', 'stopping']);
  const late = await post(app, { queries: ['a'] });
  assert.deepEqual([late.status, late.headers.connection], [503, 'close']);
  assert.equal(await status('/livez'), 200);
});

test('the schema of /readyz has every field of its reply: with vectors, without them, and during a reload', async (t) => {
  const reply = JSON.stringify(HEALTH_OPERATIONS.find(({ path }) => path === '/readyz')!.reply);
  const strict = JSON.parse(
    reply.replaceAll('"type":"object"', '"type":"object","additionalProperties":false'),
  ) as object;
  const words = new FakeRetriever({ index: 'words' });
  const info = { ...words.info, dimension: 0, metric: null, model: null, modes: ['bm25'] as const };
  const slots = [new FakeRetriever(), Object.assign(words, { info })].map(
    (retriever) => new IndexSlot(retriever.info.index, { folder: '/x' }, async () => retriever),
  );
  const holder = new IndexRegistry(slots);
  await holder.open();
  slots[1]!.report({ stage: 'reading', doing: 'reading the index: 40 %', done: 40, total: 100 });
  const app = build(t, holder);
  for (const [url, model] of [
    ['/readyz', 'fake-encoder'],
    ['/readyz?index=words', null],
  ] as const) {
    const response = await app.inject(url);
    const json = response.json<{ model: string | null; indexes: { done?: number }[] }>();
    assert.deepEqual([response.statusCode, json.model, json.indexes[1]?.done], [200, model, 40], url);
    assert.ok(Check(strict, json), `${url}: ${response.payload}`);
  }
});

test('the page and its files have a content security policy, and are revalidated with 304', async (t) => {
  const app = build(t);
  const types = {
    '/': 'text/html',
    '/page/base.css': 'text/css',
    '/page/main.js': 'text/javascript',
    '/favicon.svg': 'image/svg+xml',
    '/favicon.ico': 'image/svg+xml',
  };
  for (const [url, type] of Object.entries(types)) {
    const response = await app.inject(url);
    assert.equal(response.statusCode, 200, url);
    assert.ok(String(response.headers['content-type']).startsWith(type), url);
    assert.match(String(response.headers['content-security-policy']), /^default-src 'self'/);
    assert.equal(response.headers['x-content-type-options'], 'nosniff');
    const again = await app.inject({ url, headers: { 'if-none-match': `"other", W/${response.headers.etag}` } });
    assert.deepEqual([again.statusCode, again.payload], [304, ''], url);
    assert.equal((await app.inject({ method: 'HEAD', url })).statusCode, 200, url);
  }
});

test('an index whose threads died is not ready until it is reloaded', async (t) => {
  const opened: FakeRetriever[] = [];
  const slot = new IndexSlot('wiki', { folder: '/x' }, async () => {
    const retriever = new FakeRetriever({ index: 'wiki' });
    opened.push(retriever);
    return retriever;
  });
  const holder = new IndexRegistry([slot]);
  await holder.open();
  const app = build(t, holder);
  const ready = async (): Promise<unknown[]> => {
    const [readyz, health, metrics] = [
      await app.inject('/readyz'),
      await app.inject('/health'),
      await app.inject('/metrics'),
    ];
    const value = /^trawl_ready (\d)$/m.exec(metrics.payload)?.[1];
    return [
      readyz.statusCode,
      readyz.json<{ status: string }>().status,
      health.statusCode,
      health.json<{ status: string }>().status,
      value,
    ];
  };
  assert.deepEqual(await ready(), [200, 'ready', 200, 'healthy', '1']);
  opened[0]!.failure = new TrawlError('INTERNAL', 'the threads of /some/path have died');
  assert.deepEqual(await ready(), [503, 'failed', 503, 'failed', '0']);
  const readyz = await app.inject('/readyz');
  assert.ok(!readyz.payload.includes('/some/path'));
  assert.equal(readyz.json<{ indexes: { stage: string }[] }>().indexes[0]?.stage, 'failed');
  assert.equal((await app.inject('/livez')).statusCode, 200);
  await slot.load();
  assert.deepEqual(await ready(), [200, 'ready', 200, 'healthy', '1']);
});
