import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { resolveServerConfig } from '../../src/server/server-config.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, openSocket, post, postTo, serve } from './build.ts';

test('too many passages per query are refused, and the message has the limit', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 10 });
  for (const topk of [11, 1e300, '99999999999999999999999']) {
    const { status, json } = await post(app, { queries: ['a'], topk });
    assert.equal(status, 422);
    assert.equal(errorOf(json).code, 'K_TOO_LARGE');
    assert.match(errorOf(json).message, /limit of this server is 10 /);
  }
  assert.equal((await post(app, { queries: ['a'], topk: 10 })).status, 200);
  assert.equal((await post(app, '{"query":"a","topk":1e999}')).status, 422);
});

test('too many passages in one reply are refused', async (t) => {
  const app = build(t, new FakeRetriever(), { maxHits: 100 });
  const { status, json } = await post(app, { queries: new Array(51).fill('a'), topk: 2 });
  assert.equal(status, 422);
  assert.equal(errorOf(json).code, 'K_TOO_LARGE');
  assert.equal((await post(app, { queries: new Array(50).fill('a'), topk: 2 })).status, 200);
});

test('too many queries are a 413, and the message has the limit', async (t) => {
  const app = build(t, new FakeRetriever(), { maxQueries: 3 });
  const { status, json } = await post(app, { queries: ['a', 'b', 'c', 'd'] });
  assert.equal(status, 413);
  assert.equal(errorOf(json).code, 'TOO_MANY_QUERIES');
  assert.match(errorOf(json).message, /limit of this server is 3\./);
  assert.equal((await post(app, { queries: ['a', 'b', 'c'] })).status, 200);
});

test('a text that is too long is a 413 in every field, and the message has the limit', async (t) => {
  const app = build(t, new FakeRetriever(), { maxQueryChars: 10 });
  const long = 'x'.repeat(11);
  for (const body of [{ queries: ['a', long] }, { query: long, topk: 1 }, { queries: ['a'], questions: [long] }]) {
    const { status, json } = await post(app, body);
    assert.equal(status, 413);
    assert.equal(errorOf(json).code, 'QUERY_TOO_LONG');
    assert.match(errorOf(json).message, /11 characters; the limit of this server is 10\./);
    assert.doesNotMatch(errorOf(json).message, /xx/);
  }
  const native = await postTo(app, '/v1/search', { queries: [{ question: 'q', query: long }] });
  assert.equal(errorOf(native.json).code, 'QUERY_TOO_LONG');
  assert.equal((await post(app, { queries: ['x'.repeat(10)] })).status, 200);
});

test('while arriving bodies exceed the limit, further requests are refused', async (t) => {
  const { url, port } = await serve(t, new FakeRetriever(), { maxBodyBytesInFlight: 1_000_000 });
  const head =
    'POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 600000\r\n\r\n{';
  const sockets = [await openSocket(t, port), await openSocket(t, port)];
  // Counts what has arrived, not the content-length.
  for (const socket of sockets) socket.write(head + ' '.repeat(550_000));
  const ask = async (): Promise<Response> =>
    fetch(`${url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"queries":["a"]}',
    });
  let refused = await ask();
  for (let tries = 0; refused.status === 200 && tries < 100; tries++) {
    await sleep(5);
    refused = await ask();
  }
  assert.equal(refused.status, 503);
  assert.equal(errorOf(await refused.json()).code, 'OVERLOADED');
  assert.ok(Number(refused.headers.get('retry-after')) >= 1);
  for (const socket of sockets) socket.destroy();
  let taken = await ask();
  for (let tries = 0; taken.status !== 200 && tries < 100; tries++) {
    await sleep(5);
    taken = await ask();
  }
  assert.equal(taken.status, 200);
  for (let i = 0; i < 50; i++) assert.equal((await ask()).status, 200);
});

test('ten thousand queries in one body are answered', async (t) => {
  const app = build(t);
  const queries = Array.from({ length: 10_000 }, (_, i) => `query ${i}`);
  const { status, json } = await post(app, { queries, topk: 10, return_scores: true });
  assert.equal(status, 200);
  assert.equal((json as { result: unknown[] }).result.length, 10_000);
});

test('a body over the limit is a 413, with and without a content-length, and the connection stays usable', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), { maxBodyBytes: 100_000 });
  const body = JSON.stringify({ queries: ['x'.repeat(8_000_000)] });
  const headers = { 'content-type': 'application/json' };
  const known = await fetch(`${url}/retrieve`, { method: 'POST', headers, body });
  assert.equal(known.status, 413);
  assert.equal(errorOf(await known.json()).code, 'BODY_TOO_LARGE');
  const stream = new Blob([body]).stream();
  const chunked = await fetch(`${url}/retrieve`, { method: 'POST', headers, body: stream, duplex: 'half' });
  assert.equal(chunked.status, 413);
  assert.equal(errorOf(await chunked.json()).code, 'BODY_TOO_LARGE');
  const small = await fetch(`${url}/retrieve`, { method: 'POST', headers, body: '{"queries":["a"]}' });
  assert.equal(small.status, 200);
  await small.arrayBuffer();
});

test('deep nesting is refused before it is parsed, in every field', async (t) => {
  const app = build(t);
  const nested = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth);
  for (const body of [
    `{"queries":["a"],"ignored":${nested('[', ']', 64)}}`,
    `{"queries":["a"],"ignored":${'{"a":'.repeat(70)}1${'}'.repeat(70)}}`,
    '['.repeat(1_000_000),
  ]) {
    const { status, json } = await post(app, body);
    assert.equal(status, 422);
    assert.equal(errorOf(json).code, 'INVALID_REQUEST');
    assert.match(errorOf(json).message, /nested deeper than 64 levels/);
  }
  assert.equal((await post(app, `{"queries":["a"],"ignored":${nested('[', ']', 63)}}`)).status, 200);
  assert.equal(
    (await post(app, { queries: ['['.repeat(100), `\\"${'{'.repeat(100)}`, '"[\\'.repeat(100)] })).status,
    200,
  );
  assert.equal((await post(app, `{"queries":["a"],"ignored":[${'[],'.repeat(200)}[]]}`)).status, 200);
});

test('while slow clients leave too many replies unread, new requests are refused', async (t) => {
  const documents = [JSON.stringify({ id: '0', text: 'w'.repeat(10_000) })];
  const { url, port } = await serve(t, new FakeRetriever({ documents }), { maxReplyBytesInFlight: 5_000_000 });
  const headers = { 'content-type': 'application/json' };
  const ask = (): Promise<Response> =>
    fetch(`${url}/retrieve`, { method: 'POST', headers, body: '{"queries":["a"],"topk":1}' });
  const slow = await openSocket(t, port);
  slow.pause();
  const body = JSON.stringify({ queries: new Array(2_000).fill('q'), topk: 1 });
  slow.write(
    `POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  let refused = await ask();
  for (let i = 0; i < 200 && refused.status === 200; i++) {
    await refused.arrayBuffer();
    await sleep(10);
    refused = await ask();
  }
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2']);
  assert.equal(errorOf(await refused.json()).code, 'OVERLOADED');
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  slow.destroy();
  let answered = await ask();
  for (let i = 0; i < 200 && answered.status === 503; i++) {
    await answered.arrayBuffer();
    await sleep(10);
    answered = await ask();
  }
  assert.equal(answered.status, 200);
  await answered.arrayBuffer();
});

test('replies written at the same time are counted while they grow', async (t) => {
  const documents = [JSON.stringify({ id: '0', text: 'w'.repeat(10_000) })];
  const { url } = await serve(t, new FakeRetriever({ documents }), { maxReplyBytesInFlight: 15_000_000 });
  const ask = async (queries: number): Promise<number> => {
    const response = await fetch(`${url}/retrieve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queries: new Array(queries).fill('q'), topk: 1 }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  // 10 MB each.
  const statuses = await Promise.all(Array.from({ length: 4 }, () => ask(1_000)));
  assert.ok(statuses.includes(200) && statuses.includes(503), statuses.join(' '));
  // A single reply may be larger than the limit.
  assert.equal(await ask(2_000), 200);
});

test('replies that were read no longer count', async (t) => {
  const app = build(t, new FakeRetriever(), { maxReplyBytesInFlight: 1 });
  for (let i = 0; i < 5; i++) assert.equal((await post(app, { queries: ['a'] })).status, 200);
});

test('an impossible configuration is refused', () => {
  for (const bad of [
    { topk: 0 },
    { maxK: 1.5 },
    { topk: 20, maxK: 10 },
    { maxBodyBytes: Number.NaN },
    { maxBodyBytes: 2 ** 32 },
    { deadlineMs: 2 ** 31 },
    { keepAliveMs: 1e12 },
    { maxTopk: 5 } as object,
  ]) {
    assert.throws(() => resolveServerConfig(bad), { code: 'CONFIG_INVALID' });
  }
  assert.deepEqual(
    [resolveServerConfig().topk, resolveServerConfig().maxQueries, resolveServerConfig().maxK],
    [3, 20_000, 2_048],
  );
});

test('an origin that no browser sends is refused, with a suggestion', () => {
  for (const good of ['*', 'null', 'https://a.example', 'http://localhost:3000', 'chrome-extension://abc']) {
    assert.deepEqual(resolveServerConfig({ corsOrigins: [good] }).corsOrigins, [good]);
  }
  for (const bad of [
    '',
    'a.example',
    'https://a.example/',
    'https://A.example',
    'https://a.example:443',
    'https://*.a/x',
  ]) {
    assert.throws(
      () => resolveServerConfig({ corsOrigins: ['https://b.example', bad] }),
      { code: 'CONFIG_INVALID' },
      bad,
    );
  }
  assert.throws(
    () => resolveServerConfig({ corsOrigins: ['https://A.example/page'] }),
    /Did you mean https:\/\/a\.example\?/,
  );
});
