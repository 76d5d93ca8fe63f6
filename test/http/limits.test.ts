import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveServerConfig } from '../../src/http/server-config.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, post, serve } from './build.ts';

test('more passages per query than allowed are refused with the limit', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 10 });
  for (const topk of [11, 1e300, '99999999999999999999999']) {
    const { status, json } = await post(app, { queries: ['a'], topk });
    assert.equal(status, 422);
    assert.equal(errorOf(json).code, 'K_TOO_LARGE');
    assert.match(errorOf(json).message, /at most 10/);
  }
  assert.equal((await post(app, { queries: ['a'], topk: 10 })).status, 200);
  assert.equal((await post(app, '{"query":"a","topk":1e999}')).status, 422);
});

test('more passages in one reply than allowed are refused', async (t) => {
  const app = build(t, new FakeRetriever(), { maxHits: 100 });
  const { status, json } = await post(app, { queries: new Array(51).fill('a'), topk: 2 });
  assert.equal(status, 422);
  assert.equal(errorOf(json).code, 'K_TOO_LARGE');
  assert.equal((await post(app, { queries: new Array(50).fill('a'), topk: 2 })).status, 200);
});

test('more queries than allowed are a 413 with the limit', async (t) => {
  const app = build(t, new FakeRetriever(), { maxQueries: 3 });
  const { status, json } = await post(app, { queries: ['a', 'b', 'c', 'd'] });
  assert.equal(status, 413);
  assert.equal(errorOf(json).code, 'TOO_MANY_QUERIES');
  assert.match(errorOf(json).message, /at most 3/);
  assert.equal((await post(app, { queries: ['a', 'b', 'c'] })).status, 200);
});

test('ten thousand queries in one body are answered', async (t) => {
  const app = build(t);
  const queries = Array.from({ length: 10_000 }, (_, i) => `query ${i}`);
  const { status, json } = await post(app, { queries, topk: 10, return_scores: true });
  assert.equal(status, 200);
  assert.equal((json as { result: unknown[] }).result.length, 10_000);
});

test('a body over the limit is a 413, with and without a content-length, and the connection lives on', async (t) => {
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

test('a configuration that cannot work is refused', () => {
  for (const bad of [
    { topk: 0 },
    { maxK: 1.5 },
    { topk: 20, maxK: 10 },
    { maxBodyBytes: Number.NaN },
    { maxBodyBytes: 2 ** 32 },
  ]) {
    assert.throws(() => resolveServerConfig(bad), { code: 'CONFIG_INVALID' });
  }
  assert.deepEqual(
    [resolveServerConfig().topk, resolveServerConfig().maxQueries, resolveServerConfig().maxK],
    [3, 20_000, 2_048],
  );
});
