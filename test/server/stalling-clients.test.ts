import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { errorOf, eventually, metric, openSocket, readToEnd, serve, untilMetric } from './build.ts';

function rawPost(body: string, headers = ''): string {
  return `POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const ONE = '{"queries":["a"],"topk":1}';
/** A response larger than any socket buffer. */
const MANY = JSON.stringify({ queries: new Array(5_000).fill('q'), topk: 1 });
const LARGE_PASSAGE = { documents: [JSON.stringify({ id: '0', text: 'w'.repeat(10_000) })] };

function connections(app: FastifyInstance): Promise<number> {
  return new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
}

/** Waits until the server has `wanted` connections. */
async function untilConnections(app: FastifyInstance, wanted: number): Promise<void> {
  while ((await connections(app)) !== wanted) await sleep(10);
}

test('a client that reads nothing of its response is disconnected, and the response is freed', async (t) => {
  const { app, port } = await serve(t, new FakeRetriever(LARGE_PASSAGE), { writeStallMs: 300 });
  const socket = await openSocket(t, port);
  socket.pause();
  socket.write(rawPost(MANY));
  while (socket.bytesRead === 0) await sleep(5);
  await untilConnections(app, 0);
  // The close event may come after the metric has changed.
  await untilMetric(app, 'trawl_reply_bytes', 0);
  assert.equal(await metric(app, 'trawl_disconnects_total{reason="stalled"}'), 1);
});

test('a client that reads nothing but keeps sending is disconnected too', async (t) => {
  const { app, port } = await serve(t, new FakeRetriever(LARGE_PASSAGE), { writeStallMs: 300 });
  const socket = await openSocket(t, port);
  socket.pause();
  socket.on('error', () => undefined);
  socket.write(rawPost(MANY));
  const drip = setInterval(() => socket.write('x'), 20);
  t.after(() => clearInterval(drip));
  while (socket.bytesRead === 0) await sleep(5);
  await untilConnections(app, 0);
  // The close event may come after the metric has changed.
  await untilMetric(app, 'trawl_reply_bytes', 0);
  assert.equal(await metric(app, 'trawl_disconnects_total{reason="stalled"}'), 1);
});

test('a client that reads slowly gets its complete response', async (t) => {
  const { port } = await serve(t, new FakeRetriever(LARGE_PASSAGE), { writeStallMs: 1_000 });
  const socket = await openSocket(t, port);
  socket.write(rawPost(MANY, 'connection: close\r\n'));
  let bytes = 0;
  const start = performance.now();
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    // Takes much longer than the stall limit.
    if (performance.now() - start < 2_500) {
      socket.pause();
      setTimeout(() => socket.resume(), 5);
    }
  });
  await once(socket, 'close');
  assert.ok(bytes > 50_000_000, `${bytes} bytes`);
  assert.ok(performance.now() - start > 2_000);
});

test('waiting for a response is not a stall, also behind another response', async (t) => {
  let finish = (): void => {};
  const retriever = new FakeRetriever({
    before: ({ queries }) => (queries[0] === 'slow' ? new Promise<void>((resolve) => (finish = resolve)) : undefined),
  });
  const { port } = await serve(t, retriever, { writeStallMs: 100 });
  const slow = '{"queries":["slow"],"topk":1}';
  for (const bytes of [rawPost(slow, 'connection: close\r\n'), rawPost(ONE) + rawPost(slow, 'connection: close\r\n')]) {
    const socket = await openSocket(t, port);
    const before = retriever.calls.length;
    socket.write(bytes);
    const received = readToEnd(socket);
    await eventually(() => retriever.calls.slice(before).some(({ queries }) => queries[0] === 'slow'));
    await sleep(400);
    finish();
    assert.equal((await received).split('HTTP/1.1 200 OK').length, bytes.split('POST ').length);
  }
});

test('after a response a connection may be idle for the keep-alive time', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), { writeStallMs: 100, keepAliveMs: 60_000 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ports = new Set<number | undefined>();
  for (let i = 0; i < 3; i++) {
    await new Promise<void>((resolve, reject) => {
      const sent = request(`${url}/livez`, { agent });
      sent.on('error', reject).on('response', (response) => response.resume().on('end', resolve));
      sent.on('socket', (socket: Socket) => socket.once('connect', () => ports.add(socket.localPort)));
      sent.end();
    });
    await sleep(250);
  }
  assert.equal(ports.size, 1, 'one connection for all three');
});

test('endless headers and silent connections are closed', async (t) => {
  const { app, port } = await serve(t, new FakeRetriever(), { headersTimeoutMs: 200 });
  const slow = await openSocket(t, port);
  slow.write('POST /retrieve HTTP/1.1\r\nhost: x\r\n');
  const drip = setInterval(() => slow.write('x-drip: 1\r\n'), 50);
  t.after(() => clearInterval(drip));
  const silent = await openSocket(t, port);
  const answers = await Promise.all([readToEnd(slow), readToEnd(silent)]);
  assert.match(answers[0]!, /^HTTP\/1\.1 408 /);
  await untilConnections(app, 0);
});

test('a connection with an endless body is closed', async (t) => {
  const retriever = new FakeRetriever();
  const { app, port } = await serve(t, retriever, { receiveTimeoutMs: 300 });
  const socket = await openSocket(t, port);
  socket.write(rawPost(ONE).slice(0, -5));
  assert.match(await readToEnd(socket), /^HTTP\/1\.1 408 /);
  await untilConnections(app, 0);
  assert.equal(retriever.calls.length, 0);
  assert.equal(await metric(app, 'trawl_body_bytes'), 0);
});

test('a client that keeps its side open after the error is disconnected', async (t) => {
  const { app, port } = await serve(t);
  const socket = await openSocket(t, port);
  socket.allowHalfOpen = true;
  socket.resume();
  socket.write('garbage\r\n\r\n');
  await once(socket, 'end');
  await untilConnections(app, 0);
});

for (const path of ['/retrieve', '/mcp'])
  test(`unfinished bodies of many clients of ${path} are bounded, and freed afterwards`, async (t) => {
    const config = { maxBodyBytesInFlight: 1_000_000, mcp: { hosts: ['x'] } };
    const { app, port, url } = await serve(t, new FakeRetriever(), config);
    const stalled: Socket[] = [];
    for (let i = 0; i < 4; i++) {
      const socket = await openSocket(t, port);
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(300_000)}`);
      stalled.push(socket);
    }
    for (let held = 0; held < 1_200_000; held = await metric(app, 'trawl_body_bytes')) await sleep(5);
    const headers = { 'content-type': 'application/json' };
    const refused = await fetch(`${url}/retrieve`, { method: 'POST', headers, body: ONE });
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2']);
    assert.equal(errorOf(await refused.json()).code, 'OVERLOADED');
    // Beyond twice the limit connections are closed.
    for (const socket of stalled) socket.write('x'.repeat(300_000));
    await Promise.race(stalled.map((socket) => new Promise((resolve) => socket.resume().once('close', resolve))));
    for (const socket of stalled) socket.destroy();
    await untilConnections(app, 1);
    assert.equal(await metric(app, 'trawl_body_bytes'), 0);
    assert.equal((await fetch(`${url}/retrieve`, { method: 'POST', headers, body: ONE })).status, 200);
  });

test('connections over the limit are closed, and the others keep working', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { app, port } = await serve(t, retriever, { maxConnections: 3 });
  const kept = [await openSocket(t, port), await openSocket(t, port), await openSocket(t, port)];
  await untilConnections(app, 3);
  const over = await openSocket(t, port);
  await once(over.resume(), 'close');
  assert.equal(await metric(app, 'trawl_disconnects_total{reason="too-many"}'), 1);
  kept[0]!.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n');
  const [chunk] = (await once(kept[0]!, 'data')) as [Buffer];
  assert.match(chunk.toString(), /200 OK/);
});

test('a large response causes no warning about listeners', async (t) => {
  const warnings: string[] = [];
  const note = (warning: Error): unknown => warnings.push(warning.name);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  const { url } = await serve(t, new FakeRetriever(LARGE_PASSAGE));
  const headers = { 'content-type': 'application/json' };
  await (await fetch(`${url}/retrieve`, { method: 'POST', headers, body: MANY })).arrayBuffer();
  await nextIteration();
  assert.deepEqual(warnings, []);
});

test('two thousand connections that clients open and close are all released', async (t) => {
  const { app, port, url } = await serve(t);
  for (let round = 0; round < 20; round++) {
    const sockets = await Promise.all(Array.from({ length: 100 }, () => openSocket(t, port)));
    for (const [i, socket] of sockets.entries()) {
      if (i % 4 === 0) socket.write('GET /livez HTTP/1.1\r\nhost: x\r\n\r\n');
      if (i % 4 === 1) socket.write('POST /retrieve HTTP/1.1\r\n');
      if (i % 4 === 2) socket.resetAndDestroy();
      else socket.destroy();
    }
  }
  await untilConnections(app, 0);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
});
