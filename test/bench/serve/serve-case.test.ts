import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { HttpConnection } from '../../../bench/serve/http-connection.ts';
import type { LoadResult } from '../../../bench/serve/load-plan.ts';
import { AnswerCheck, sameAnswer } from '../../../bench/serve/serve-answers.ts';
import { serveRecords } from '../../../bench/serve/serve-case.ts';
import { LOADS } from '../../../bench/serve/serve-loads.ts';

const answer = (ids: string[], scores: number[]) => ({ query: 'q', ids, scores });

test('answers that differ only in ties are the same', () => {
  const one = answer(['a', 'b', 'c'], [0.9, 0.8, 0.7]);
  assert.ok(sameAnswer(one, answer(['a', 'b', 'c'], [0.900001, 0.8, 0.7])));
  assert.ok(sameAnswer(answer(['a', 'b'], [0.8, 0.8]), answer(['b', 'a'], [0.8, 0.8])));
  assert.ok(sameAnswer(one, answer(['a', 'b', 'd'], [0.9, 0.8, 0.7])), 'c and d are tied at the end of the list');
  assert.ok(!sameAnswer(one, answer(['a', 'd', 'c'], [0.9, 0.8, 0.7])), 'd replaces b, which is not tied with it');
  assert.ok(!sameAnswer(one, answer(['a', 'b', 'c'], [0.9, 0.8, 0.69])));
  assert.ok(!sameAnswer(one, answer(['a', 'b'], [0.9, 0.8])));
  assert.ok(!sameAnswer(one, answer(['a', 'b', 'c'], [0.9, Number.NaN, 0.7])));
  const check = new AnswerCheck();
  assert.equal(check.wrong([one, one, { ...one, query: 'other' }]), 0);
  assert.equal(check.wrong([answer(['x', 'y', 'z'], [0.9, 0.8, 0.7])]), 1);
});

test('answers in another precision are compared with tolerance, and strictly among themselves', () => {
  const check = new AnswerCheck();
  const exact = answer(['a', 'b', 'c'], [0.9, 0.8, 0.7]);
  assert.equal(check.wrong([exact]), 0);
  const rounded = answer(['a', 'b', 'c'], [0.905, 0.797, 0.7]);
  assert.equal(new AnswerCheck().wrong([exact, rounded]), 1, 'wrong in float32');
  assert.equal(check.wrong([rounded], 'bfloat16'), 0);
  assert.equal(check.wrong([{ ...rounded, scores: [0.906, 0.797, 0.7] }], 'bfloat16'), 1, 'other bits in bfloat16');
  assert.equal(check.wrong([answer(['a', 'x', 'c'], [0.9, 0.8, 0.7])], 'int8'), 0, 'b and c are tied in int8');
  for (const [precision, ids, wrong] of [
    ['bfloat16', ['a', 'x', 'c'], 0],
    ['bfloat16', ['x', 'y', 'c'], 1],
    ['int8', ['x', 'y', 'c'], 0],
    ['int8', ['x', 'y', 'z'], 1],
  ] as const) {
    const near = { query: 'near', ids: ['a', 'b', 'c'], scores: [0.9, 0.895, 0.89] };
    const compared = new AnswerCheck();
    assert.equal(compared.wrong([near]), 0);
    const message = `${precision}: enough of the passages are the same`;
    assert.equal(compared.wrong([{ ...near, ids: [...ids] }], precision), wrong, message);
  }
  const far = { query: 'other', ids: ['a', 'b'], scores: [0.9, 0.8] };
  assert.equal(check.wrong([far]), 0);
  for (const wrong of [
    { ...far, ids: ['x', 'b'] },
    { ...far, scores: [0.9, 0.75] },
    { ...far, ids: ['a'], scores: [0.9] },
  ]) {
    assert.equal(check.wrong([wrong], 'bfloat16'), 1);
    assert.equal(check.wrong([wrong], 'bfloat16'), 1, 'a wrong answer is not what later ones are compared with');
  }
  assert.equal(check.wrong([far], 'bfloat16'), 0);
});

test('a record has the median rate, percentiles over all latencies, and the ratio that its load defines', () => {
  const result = (queries: number, latenciesMs: number[], errors = {}): LoadResult => ({
    ...{ elapsedMs: 1_000, requests: latenciesMs.length, queries, latenciesMs, overheadsMs: [], stagesMs: [], errors },
  });
  const trawl = {
    engine: 'trawl',
    isBaseline: false,
    wrong: 0,
    residentBytes: null,
    results: [result(100, [1, 2]), result(300, [3]), result(200, [2])],
  };
  const baseline = {
    engine: 'search-r1',
    isBaseline: true,
    wrong: 2,
    residentBytes: null,
    results: [result(50, [8, 8], { 500: 3 })],
  };
  const [trawlRecord, baselineRecord] = serveRecords('verl', LOADS.verl, [trawl, baseline]);
  assert.equal(trawlRecord?.queriesPerS, 200);
  assert.equal(trawlRecord?.p50Ms, 2);
  assert.equal(trawlRecord?.maxMs, 3);
  assert.equal(trawlRecord?.ratioToBaseline, 4);
  assert.equal(trawlRecord?.overheadP50Ms, null);
  assert.deepEqual(
    [baselineRecord?.errors, baselineRecord?.errorCounts, baselineRecord?.wrong, baselineRecord?.ratioToBaseline],
    [3, { 500: 3 }, 2, 1],
  );
  assert.equal(serveRecords('lone', LOADS.lone, [trawl, baseline])[0]?.ratioToBaseline, 4, '8 ms over 2 ms');
  assert.equal(serveRecords('lone', LOADS.lone, [trawl])[0]?.ratioToBaseline, null);
});

async function portOf(t: TestContext, handle: Parameters<typeof createServer>[1]): Promise<number> {
  const server = createServer(handle as never).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const REQUEST = Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n');

test('a connection matches answers to requests and reconnects after it was closed', async (t) => {
  let requests = 0;
  const handle = ((_request, response) => {
    const body = `${++requests}`.repeat(200_000);
    response.setHeader('content-length', body.length);
    response.end(body);
  }) as Parameters<typeof createServer>[1];
  const port = await portOf(t, handle);
  const connection = new HttpConnection(port);
  for (const [i, keepAlive] of [true, true, false, true].entries()) {
    const reply = await connection.send(REQUEST, { keepAlive });
    assert.equal(reply.status, 200);
    assert.equal(reply.body.toString(), `${i + 1}`.repeat(200_000));
  }
  connection.close();
});

test('a connection that ends without an answer rejects with a code', async (t) => {
  const port = await portOf(t, ((request: { socket: { destroy(): void } }) => request.socket.destroy()) as never);
  const connection = new HttpConnection(port);
  await assert.rejects(connection.send(REQUEST, { keepAlive: true }), { message: /closed|ECONNRESET/ });
  const waiting = connection.send(REQUEST, { keepAlive: true });
  connection.close();
  await assert.rejects(waiting, { message: 'closed' });
  await assert.rejects(new HttpConnection(1).send(REQUEST, { keepAlive: true }), { message: 'ECONNREFUSED' });
});
