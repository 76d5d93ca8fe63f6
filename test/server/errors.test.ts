import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ERROR_CODES, type ErrorCode, TrawlError } from '../../src/base/errors.ts';
import { ERROR_STATUS } from '../../src/server/errors/error-status.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, post } from './build.ts';
import { memoryLog } from './memory-log.ts';

test('every code has a status, and none is 429', () => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    assert.ok(
      [400, 401, 403, 404, 405, 409, 410, 413, 415, 417, 422, 500, 501, 503].includes(ERROR_STATUS[code]),
      code,
    );
  }
});

test('overload is a 503 with Retry-After and its message', async (t) => {
  const retriever = new FakeRetriever({
    before: () => {
      throw new TrawlError('OVERLOADED', 'The queue is full.');
    },
  });
  const { status, json, headers } = await post(build(t, retriever, { retryAfterS: 7 }), { queries: ['a'] });
  assert.deepEqual([status, headers['retry-after']], [503, '7']);
  assert.deepEqual(
    [errorOf(json).code, errorOf(json).message, errorOf(json).detail],
    ['OVERLOADED', 'The queue is full.', 'Service Unavailable'],
  );
});

test('for a bug the client gets code and request id, and the log everything', async (t) => {
  const { logger, lines } = memoryLog();
  const retriever = new FakeRetriever({
    before: () => {
      throw new TypeError('undefined is not a function at /secret/path');
    },
  });
  const app = build(t, retriever, { logger });
  const headers = { 'content-type': 'application/json', 'x-request-id': 'rollout-7/step:3' };
  const answer = await post(app, { queries: ['a'] }, headers);
  assert.equal(answer.status, 500);
  assert.equal(answer.headers['x-request-id'], 'rollout-7/step:3');
  assert.deepEqual([errorOf(answer.json).code, errorOf(answer.json).detail], ['INTERNAL', 'Internal Server Error']);
  assert.ok(!answer.text.includes('secret'));
  const line = lines.find((candidate) => candidate.code === 'INTERNAL');
  assert.equal(line?.reqId, 'rollout-7/step:3');
  assert.match(JSON.stringify(line), /secret\/path/);
});

test('one failing query fails the request, and the log has its position', async (t) => {
  const { logger, lines } = memoryLog();
  const error = new TrawlError('FILE_CHANGED', '/data/codes.i8 was written to after it was opened.');
  const retriever = new FakeRetriever({ outcome: (_input, i) => (i === 1 ? { ok: false, error } : undefined) });
  const { status, json } = await post(build(t, retriever, { logger }), { queries: ['a', 'b', 'c'] });
  assert.deepEqual([status, errorOf(json).code], [503, 'FILE_CHANGED']);
  const line = lines.find(({ code }) => code === 'FILE_CHANGED');
  assert.deepEqual([line?.details, line?.level], [{ query: 1 }, 50]);
});

test('a stored row that is not JSON is an error, never a partial response', async (t) => {
  const retriever = new FakeRetriever({ documents: ['{"text": broken'] });
  const { status, json } = await post(build(t, retriever), { queries: ['a'] });
  assert.deepEqual([status, errorOf(json).code], [500, 'INTERNAL']);
});

test('header and log line of a response have its stages, and no texts', async (t) => {
  const { logger, lines } = memoryLog();
  const body = { queries: ['secret query', 'x'], questions: ['secret question', null], topk: 2 };
  const { headers } = await post(build(t, new FakeRetriever(), { logger }), body);
  const header = String(headers['server-timing']);
  assert.match(
    header,
    /^parse;dur=\d+\.\d{3}, queue;dur=2\.000, embed;dur=1\.250, search;dur=0\.500, fetch;dur=0\.250, rerank;dur=0\.000, reply;dur=\d+\.\d{3}, total;dur=\d+\.\d{3}$/,
  );
  const line = lines.find((candidate) => candidate.msg === 'retrieved');
  assert.deepEqual(
    [line?.dialect, line?.queries, line?.k, line?.truncated, line?.queueMs, line?.embedMs, line?.searchMs],
    ['search-r1', 2, 2, 0, 2, 1.25, 0.5],
  );
  const total = /total;dur=([\d.]+)/.exec(header)?.[1];
  assert.equal(line?.totalMs, Number(total));
  assert.ok(!JSON.stringify(lines).includes('secret'));
});

test('a refusal is logged with method, route and dialect, without path and query string', async (t) => {
  const { logger, lines } = memoryLog();
  const app = build(t, new FakeRetriever(), { logger });
  await post(app, { queries: 3 });
  await app.inject('/v1/passages/secret-id?x=secret');
  await app.inject('/secret/path?q=secret');
  assert.deepEqual(
    lines.map(({ method, route, dialect, code }) => [method, route, dialect, code]),
    [
      ['POST', '/retrieve', 'search-r1', 'INVALID_REQUEST'],
      ['GET', '/v1/passages/:id', undefined, 'NOT_FOUND'],
      ['GET', undefined, undefined, 'NOT_FOUND'],
    ],
  );
  assert.ok(!JSON.stringify(lines.slice(2)).includes('secret'));
});

test('an unusable request id is replaced', async (t) => {
  const app = build(t);
  for (const id of ['a b', 'x'.repeat(200), 'é', '{"a":1}']) {
    const response = await app.inject({ url: '/livez', headers: { 'x-request-id': id } });
    assert.match(String(response.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  }
});
