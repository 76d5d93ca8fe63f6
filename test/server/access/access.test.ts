import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../../src/server/indexes/index-slot.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { build, errorOf, postTo, serve } from '../build.ts';

const READ = 'r-key-of-enough-characters';
const ADMIN = 'a-key-of-enough-characters';
const KEYS = `# for the test\n\nread:${READ}\r\nadmin:${ADMIN}\n`;

const keys = (): AccessKeys => AccessKeys.parse(KEYS, 'keys');
const bearer = (key: string): Record<string, string> => ({
  'content-type': 'application/json',
  authorization: `Bearer ${key}`,
});

async function reloadable(): Promise<IndexRegistry> {
  const holder = new IndexRegistry([new IndexSlot('wiki', { folder: '/x' }, async () => new FakeRetriever())]);
  await holder.open();
  return holder;
}

test('with keys every search route requires one, with an error in its dialect’s format', async (t) => {
  const app = build(t, new FakeRetriever(), { keys: keys() });
  for (const { path, example } of DIALECTS) {
    const url = path.replace(/:\w+/, 'x');
    const without = await postTo(app, url, example);
    assert.equal(without.status, 401, url);
    assert.equal(without.headers['www-authenticate'], 'Bearer realm="trawl"');
    // The errors of text-embeddings-inference have no code.
    assert.match(without.text, /^\/(embed|info)?$/.test(url) ? /requires an API key/ : /UNAUTHORIZED/);
    const wrong = await postTo(app, url, example, bearer('wrong-key-of-enough-characters'));
    assert.equal(wrong.status, 401);
    assert.equal(wrong.headers['www-authenticate'], 'Bearer realm="trawl", error="invalid_token"');
    for (const key of [READ, ADMIN]) assert.notEqual((await postTo(app, url, example, bearer(key))).status, 401, url);
  }
  const openai = (await postTo(app, '/v1/embeddings', {})).json as { error: { type: string } };
  assert.equal(openai.error.type, 'invalid_request_error');
  assert.equal(errorOf((await postTo(app, '/retrieve', {})).json).detail, 'Unauthorized');
});

test('a key is bound to the views of all its lines; a line with another word or name is refused', () => {
  const text = `read:${READ} view=a  view=b-2\nread:${ADMIN} view=c\nadmin:${ADMIN}`;
  const access = AccessKeys.parse(text, 'keys');
  assert.deepEqual(access.grantOf(`Bearer ${READ}`), { scope: 'read', views: ['a', 'b-2'] });
  assert.deepEqual(access.grantOf(`Bearer ${ADMIN}`), { scope: 'admin', views: ['c'] });
  assert.equal(access.grantOf(`Bearer ${READ} view=a`), null);
  assert.deepEqual(access.views, ['a', 'b-2', 'c']);
  for (const [line, message] of [
    [`read:${READ} only=a`, /keys, line 1: expected scope:key, .* and view=NAME after it/],
    [`read:${READ} view=`, /keys, line 1: expected scope:key/],
    [`read:${READ} view=a/b`, /keys, line 1: "a\/b" cannot be the name of a view/],
  ] as const) {
    assert.throws(() => AccessKeys.parse(line, 'keys'), trawlError('CONFIG_INVALID', message));
  }
});

test('the key is checked before anything else of a request', async (t) => {
  const app = build(t, new IndexRegistry(), { keys: keys() });
  for (const [url, body] of [
    ['/retrieve', '{'],
    ['/retrieve?index=none', {}],
    ['/nowhere', {}],
    ['/retrieve/', {}],
    ['/indexes/none/retrieve', {}],
  ] as const) {
    assert.equal((await postTo(app, url, body)).status, 401, url);
  }
  assert.equal((await postTo(app, '/nowhere', {}, bearer(READ))).status, 404);
  assert.equal((await app.inject({ method: 'DELETE', url: '/retrieve' })).statusCode, 401);
});

test('health routes, page and description need no key; facts and metrics do', async (t) => {
  const app = build(t, new FakeRetriever(), { keys: keys() });
  for (const url of [
    '/livez',
    '/readyz',
    '/health',
    '/healthz',
    '/',
    '/page/main.js',
    '/page/base.css',
    '/docs',
    '/docs/openapi.json',
  ]) {
    assert.equal((await app.inject(url)).statusCode, 200, url);
  }
  for (const url of ['/metrics', '/v1/indexes', '/v1/passages/0']) {
    assert.equal((await app.inject(url)).statusCode, 401, url);
    assert.equal((await app.inject({ method: 'HEAD', url })).statusCode, 401, url);
    assert.equal((await app.inject({ url, headers: bearer(READ) })).statusCode, 200, url);
  }
});

test('an Authorization header without a bearer key counts as none', async (t) => {
  const app = build(t, new FakeRetriever(), { keys: keys() });
  const status = async (authorization: string): Promise<number> =>
    (await app.inject({ url: '/v1/indexes', headers: { authorization } })).statusCode;
  for (const [header, expected] of [
    [`Bearer ${READ}`, 200],
    [`bearer  ${READ} `, 200],
    [READ, 401],
    [`Basic ${READ}`, 401],
    [`Bearer ${READ} x`, 401],
    [`Bearer ${READ.slice(0, -1)}`, 401],
    [`Bearer ${READ}x`, 401],
    [`Bearer ${READ.toUpperCase()}`, 401],
    ['Bearer ', 401],
    ['', 401],
    [`Bearer ${'x'.repeat(10_000)}`, 401],
  ] as const) {
    assert.equal(await status(header), expected, header.slice(0, 60));
  }
});

test('with keys administration requires an admin key', async (t) => {
  const app = build(t, await reloadable(), { keys: keys() });
  const url = '/admin/indexes/wiki/reload';
  assert.equal((await postTo(app, url, {})).status, 401);
  const read = await postTo(app, url, {}, bearer(READ));
  assert.deepEqual([read.status, errorOf(read.json).code], [403, 'FORBIDDEN']);
  assert.match(String(read.headers['www-authenticate']), /insufficient_scope/);
  assert.equal((await postTo(app, url, {}, bearer(ADMIN))).status, 200);
});

test('without keys administration requires a local client that is no browser or proxy', async (t) => {
  const app = build(t, await reloadable());
  const reload = async (remoteAddress: string, headers: Record<string, string> = {}): Promise<number> =>
    (await app.inject({ method: 'POST', url: '/admin/indexes/wiki/reload', remoteAddress, headers })).statusCode;
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) assert.equal(await reload(address), 200);
  for (const address of ['10.0.0.1', '::ffff:10.0.0.1', 'fe80::1', '128.0.0.1']) {
    assert.equal(await reload(address), 403, address);
  }
  for (const header of ['origin', 'sec-fetch-site', 'x-forwarded-for', 'forwarded', 'via', 'x-real-ip']) {
    assert.equal(await reload('127.0.0.1', { [header]: '127.0.0.1' }), 403, header);
  }
});

test('OpenAI’s client sends its key in the expected header', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), { keys: keys() });
  const ask = (apiKey: string): Promise<unknown> =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }).embeddings.create({
      model: 'fake-encoder',
      input: 'a',
    });
  await ask(READ);
  await assert.rejects(ask('none'), OpenAI.AuthenticationError);
});

test('neither responses nor the log contain a key', async (t) => {
  const { pino } = await import('pino');
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const app = build(t, await reloadable(), { keys: keys(), logger });
  const texts: string[] = [];
  for (const key of [READ, ADMIN, 'wrong-key-of-enough-characters']) {
    for (const url of ['/retrieve', '/admin/indexes/wiki/reload', '/nowhere']) {
      texts.push((await postTo(app, url, { queries: 3 }, bearer(key))).text);
    }
    texts.push((await app.inject({ url: '/metrics', headers: bearer(key) })).payload);
  }
  assert.doesNotMatch([...texts, ...lines].join('\n'), /key-of-enough/);
});

test('an invalid line of keys is named by its number and not repeated', () => {
  const cases: readonly [string, RegExp][] = [
    ['', /^f: no key found/],
    ['# only a remark', /no key found/],
    ['read', /^f, line 1: expected scope:key/],
    [`\nread: ${READ}`, /^f, line 2: expected scope:key/],
    [`write:${READ}`, /^f, line 1: expected the scope read or admin/],
    ['read:short', /^f, line 1: the key has 5 characters; expected at least 16/],
    [`read:${'ü'.repeat(20)}`, /ASCII/],
    [`admin:${ADMIN}\nread:short`, /line 2/],
  ];
  for (const [text, message] of cases) {
    assert.throws(
      () => AccessKeys.parse(text, 'f'),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'CONFIG_INVALID');
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /short|key-of/);
        return true;
      },
    );
  }
});

test('keys can be replaced while the server runs', async (t) => {
  const mine = keys();
  const app = build(t, new FakeRetriever(), { keys: mine });
  const status = async (key: string): Promise<number> =>
    (await app.inject({ url: '/v1/indexes', headers: bearer(key) })).statusCode;
  mine.replaceBy(AccessKeys.parse('read:another-key-of-the-reader', 'keys'));
  assert.deepEqual([await status(READ), await status('another-key-of-the-reader')], [401, 200]);
});

test('pages of other origins can read nothing unless their origin is allowed', async (t) => {
  const origin = 'https://page.example';
  const preflight = {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type',
  };
  const corsHeaders = (headers: Record<string, unknown>): string[] =>
    Object.keys(headers).filter((name) => name.startsWith('access-control-'));
  const closed = build(t);
  for (const method of ['GET', 'OPTIONS'] as const) {
    const { headers } = await closed.inject({ method, url: '/v1/indexes', headers: preflight });
    assert.deepEqual(corsHeaders(headers), []);
  }
  const app = build(t, new FakeRetriever(), { corsOrigins: [origin], keys: keys() });
  const allowed = await app.inject({ method: 'OPTIONS', url: '/retrieve', headers: preflight });
  assert.equal(allowed.statusCode, 204);
  assert.equal(allowed.headers['access-control-allow-origin'], origin);
  assert.match(String(allowed.headers['access-control-allow-headers']), /authorization, content-type/);
  assert.equal(allowed.headers['access-control-allow-credentials'], undefined);
  const answer = await postTo(app, '/retrieve', { queries: ['a'] }, { ...bearer(READ), origin });
  assert.deepEqual(
    [answer.status, answer.headers['access-control-allow-origin'], answer.headers.vary],
    [200, origin, 'origin'],
  );
  const refused = await postTo(app, '/retrieve', { queries: ['a'] }, { origin });
  assert.deepEqual(
    [refused.status, refused.headers['access-control-allow-origin']],
    [401, origin],
    'the page may read why',
  );
  for (const other of ['https://page.example.evil', 'http://page.example', 'null']) {
    const { headers } = await app.inject({ url: '/livez', headers: { origin: other } });
    assert.deepEqual(corsHeaders(headers), [], other);
    assert.equal(headers.vary, 'origin');
  }
  const everyone = build(t, new FakeRetriever(), { corsOrigins: ['*'] });
  const { headers } = await everyone.inject({ url: '/livez', headers: { origin } });
  assert.deepEqual([headers['access-control-allow-origin'], headers.vary], ['*', undefined]);
});

test('the description says how keys are sent', async (t) => {
  const document = (await build(t).inject('/docs/openapi.json')).json<{
    security: unknown;
    components: { securitySchemes: object };
    paths: Record<string, Record<string, { security?: unknown; responses: object }>>;
  }>();
  assert.deepEqual(document.security, [{}, { bearer: [] }]);
  assert.deepEqual(Object.keys(document.components.securitySchemes), ['bearer']);
  assert.deepEqual(document.paths['/livez']!.get!.security, []);
  const { post: reload } = document.paths['/admin/indexes/{name}/reload']!;
  assert.deepEqual(Object.keys(reload!.responses), ['200', '401', '403', '404', '409', '413', '415', '422', '503']);
  assert.ok('get' in document.paths['/metrics']!);
});
