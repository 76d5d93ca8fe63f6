import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { listen } from '../../src/server/connections/listen.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { build, errorOf, eventually, openSocket, readToEnd, serve, untilMetric } from './build.ts';

function rawPost(body: string, headers = ''): string {
  return `POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const ONE = '{"queries":["a"],"topk":1}';

test('a client that disconnects aborts its call', async (t) => {
  for (const leave of ['destroy', 'end', 'resetAndDestroy'] as const) {
    const retriever = new FakeRetriever({ before: untilAborted });
    const { port } = await serve(t, retriever);
    const socket = await openSocket(t, port);
    socket.write(rawPost(ONE));
    await eventually(() => retriever.calls.length === 1);
    await sleep(20);
    assert.equal(retriever.calls[0]?.signal?.aborted, false, 'not before it leaves');
    socket[leave]();
    await eventually(() => retriever.calls[0]?.signal?.aborted === true);
  }
});

test('a call of a pipelined request is aborted too', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { port } = await serve(t, retriever);
  const socket = await openSocket(t, port);
  socket.write(rawPost(ONE) + rawPost(ONE));
  await eventually(() => retriever.calls.length === 2);
  socket.destroy();
  await eventually(() => retriever.calls.every((call) => call.signal?.aborted === true));
});

test('an answered call is never aborted, whether its connection stays open or closes', async (t) => {
  const retriever = new FakeRetriever();
  const { port, app } = await serve(t, retriever);
  const socket = await openSocket(t, port);
  for (let i = 0; i < 30; i++) {
    socket.write(rawPost(ONE));
    await once(socket, 'data');
  }
  assert.equal(retriever.calls.length, 30);
  socket.destroy();
  await eventually(() => (app.server as unknown as { _connections: number })._connections === 0);
  assert.ok(retriever.calls.every((call) => call.signal?.aborted === false));
});

test('listeners do not accumulate on a connection with many requests', async (t) => {
  const warnings: Error[] = [];
  const note = (warning: Error): unknown => warnings.push(warning);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  const { port } = await serve(t);
  const socket = await openSocket(t, port);
  for (let i = 0; i < 50; i++) {
    socket.write(rawPost(ONE));
    await once(socket, 'data');
  }
  // Pipelined; the last response closes the connection.
  const ahead = await openSocket(t, port);
  ahead.write(rawPost(ONE).repeat(39) + rawPost(ONE, 'connection: close\r\n'));
  assert.equal((await readToEnd(ahead)).split('HTTP/1.1 200 OK').length, 41);
  await nextIteration();
  assert.deepEqual(
    warnings.filter((warning) => warning.name === 'MaxListenersExceededWarning'),
    [],
  );
});

test('an unfinished request whose client disconnects is never searched', async (t) => {
  const retriever = new FakeRetriever();
  const { app, port, url } = await serve(t, retriever);
  const socket = await openSocket(t, port);
  socket.write(rawPost(ONE).slice(0, -5));
  await untilMetric(app, 'trawl_body_bytes', ONE.length - 5);
  socket.destroy();
  await untilMetric(app, 'trawl_body_bytes', 0);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  assert.equal(retriever.calls.length, 0);
});

test('bytes that are not HTTP get a 400, and the server keeps running', async (t) => {
  const { port, url } = await serve(t);
  const garbage = ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 'hello\r\n\r\n', 'GET / HTTP/9.9\r\n\r\n'];
  for (const bytes of garbage) {
    const socket = await openSocket(t, port);
    socket.write(bytes);
    const answer = await readToEnd(socket);
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, JSON.stringify(bytes));
    assert.match(answer, /INVALID_REQUEST/);
  }
  const socket = await openSocket(t, port);
  socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`);
  assert.match(await readToEnd(socket), /^HTTP\/1\.1 431 /);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
});

test('bytes after the end of a body are parsed as another request and get a 400', async (t) => {
  const { port, url } = await serve(t);
  const socket = await openSocket(t, port);
  socket.write(`${rawPost(ONE)}trailing garbage\r\n\r\n`);
  assert.match(await readToEnd(socket), /HTTP\/1\.1 400 Bad Request/);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
});

test('garbage after running requests gets its 400 after their complete responses', async (t) => {
  const documents = [JSON.stringify({ id: '0', text: 'w'.repeat(5_000) })];
  // Held back, and large enough to be still in transit when the garbage arrives.
  for (const queries of [1, 5_000]) {
    let finish = (): void => {};
    const before = (): Promise<void> => new Promise((resolve) => (finish = resolve));
    const retriever = new FakeRetriever({ documents, ...(queries === 1 ? { before } : {}) });
    const { port } = await serve(t, retriever);
    const socket = await openSocket(t, port);
    const body = JSON.stringify({ queries: new Array(queries).fill('q'), topk: 1 });
    socket.write(rawPost(body) + (queries === 1 ? 'GARBAGE\r\n\r\n' : ''));
    if (queries > 1) {
      await once(socket, 'readable');
      socket.write('GARBAGE\r\n\r\n');
      socket.write('MORE\r\n\r\n');
    }
    const received = readToEnd(socket);
    await eventually(() => retriever.calls.length === 1);
    finish();
    const text = await received;
    const [head, ...rest] = text.split('\r\n\r\n');
    assert.match(head!, /^HTTP\/1\.1 200 OK\r\n/);
    const length = Number(/content-length: (\d+)/.exec(head!)?.[1]);
    const after = rest.join('\r\n\r\n');
    assert.equal((JSON.parse(after.slice(0, length)) as { result: unknown[] }).result.length, queries);
    assert.match(after.slice(length), /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.equal(after.slice(length).split('HTTP/1.1').length, 2, 'one 400 only');
  }
});

test('a broken chunked body gets the 400 in place of its response', async (t) => {
  const { app, port } = await serve(t);
  const socket = await openSocket(t, port);
  socket.write('POST /retrieve HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  await untilMetric(app, 'trawl_requests_in_flight', 1);
  socket.write('zz\r\n');
  const answer = await readToEnd(socket);
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/);
  assert.equal(answer.split('HTTP/1.1').length, 2);
});

test('a reply to ten thousand queries arrives complete and has a content-length', async (t) => {
  const document = JSON.stringify({ id: '0', title: 'T', text: 'w'.repeat(600) });
  const { url } = await serve(t, new FakeRetriever({ documents: new Array(10).fill(document) }));
  const body = JSON.stringify({ queries: new Array(10_000).fill('q'), topk: 10, return_scores: true });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/retrieve`, { method: 'POST', headers, body });
  const text = await response.text();
  assert.equal(response.status, 200);
  assert.equal(Buffer.byteLength(text), Number(response.headers.get('content-length')));
  assert.equal((JSON.parse(text) as { result: unknown[] }).result.length, 10_000);
});

test('a client that disconnects stops the writing of its large reply', async (t) => {
  const retriever = new FakeRetriever({ documents: [JSON.stringify({ id: '0', text: 'w'.repeat(5_000) })] });
  const { port, url } = await serve(t, retriever);
  const socket = await openSocket(t, port);
  socket.write(rawPost(JSON.stringify({ queries: new Array(20_000).fill('q') })));
  await eventually(() => retriever.calls.length === 1);
  socket.destroy();
  await eventually(() => retriever.calls[0]?.signal?.aborted === true);
  assert.equal((await fetch(`${url}/livez`)).status, 200);
});

test('closing finishes a running request, refuses new ones and closes idle connections', async (t) => {
  let finish = (): void => {};
  const retriever = new FakeRetriever({ before: () => new Promise<void>((resolve) => (finish = resolve)) });
  const holder = IndexRegistry.single(retriever);
  const { app, port, url } = await serve(t, holder);
  const idle = await openSocket(t, port);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const running = new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpRequest(`${url}/retrieve`, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    });
    request.on('response', resolve).on('error', reject).end(ONE);
  });
  await eventually(() => retriever.calls.length === 1);
  holder.stop();
  const closed = app.close();
  await once(idle, 'close');
  finish();
  const response = await running;
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers.connection, 'close');
  response.resume();
  await closed;
  await assert.rejects(fetch(`${url}/livez`));
});

test('a request that arrived before the stop, but was not read yet, is answered', async (t) => {
  const { app, port } = await serve(t);
  const socket = await openSocket(t, port);
  await eventually(() => app.server.listening);
  const received = readToEnd(socket);
  // In one iteration of the event loop, like a server that is busy when it is stopped.
  socket.write('GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  const closed = app.close();
  assert.match(await received, /^HTTP\/1\.1 200 OK/);
  await closed;
});

test('a response that is still being read when the server stops arrives complete', async (t) => {
  // Written at once; the system buffers only a part of it.
  const documents = [JSON.stringify({ id: '0', text: 'w'.repeat(20_000_000) })];
  const { app, port } = await serve(t, new FakeRetriever({ documents }));
  const socket = await openSocket(t, port);
  socket.write(rawPost(ONE));
  await once(socket, 'readable');
  const closed = app.close();
  await sleep(400);
  const answer = await readToEnd(socket);
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  assert.equal(body.length, Number(/content-length: (\d+)/.exec(answer)?.[1]));
  await closed;
});

test('a busy connection is closed after a response with connection: close, never in between', async (t) => {
  const { app, port } = await serve(t);
  let begun = 0;
  const answers = Array.from({ length: 20 }, async () => {
    const socket = await openSocket(t, port);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk));
    for (let first = true; ; first = false) {
      text = '';
      socket.write(rawPost(ONE));
      await eventually(() => text.endsWith('}') || socket.destroyed);
      if (!text.startsWith('HTTP/1.1 200')) return 'disconnected';
      if (/^connection: close/im.test(text)) return 'closed by the response';
      if (first) begun++;
      await sleep(Math.random() * 40);
    }
  });
  await eventually(() => begun === 20);
  await app.close();
  assert.deepEqual(await Promise.all(answers), new Array(20).fill('closed by the response'));
});

test('while the server stops, a client that was quiet for a moment still gets an answer, which closes its connection', async (t) => {
  const { app, port } = await serve(t);
  const socket = await openSocket(t, port);
  socket.write(rawPost(ONE));
  await once(socket, 'data');
  const closed = app.close();
  // As long as a busy machine may keep a client from sending its next request.
  await sleep(1_000);
  const received = readToEnd(socket);
  socket.write(rawPost(ONE));
  assert.match(await received, /^HTTP\/1\.1 200 [\s\S]*^connection: close/im);
  await closed;
});

test('a port in use is an error that says what to do', async (t) => {
  const { port } = await serve(t);
  const second = build(t);
  await assert.rejects(listen(second, { host: '127.0.0.1', port }), { code: 'PORT_IN_USE', message: /--port/ });
});

/** Status, headers and JSON of the only response on a connection. */
async function answerTo(t: TestContext, port: number, bytes: string) {
  const socket = await openSocket(t, port);
  socket.write(bytes);
  const [head = '', body = ''] = (await readToEnd(socket)).split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(': ', 2) as [string, string]));
  return { status: Number(statusLine.split(' ')[1]), headers, json: JSON.parse(body) as unknown };
}

test('a request without a Host header, or with an unknown expectation, gets a JSON error with the usual headers', async (t) => {
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
  const { port, app } = await serve(t, new FakeRetriever(), { logger });
  const body = 'content-type: application/json\r\ncontent-length: 2\r\n\r\n{}';
  for (const [bytes, status, code] of [
    ['GET /livez HTTP/1.1\r\n\r\n', 400, 'HOST_MISSING'],
    [`POST /retrieve HTTP/1.1\r\n${body}`, 400, 'HOST_MISSING'],
    ['GET /nowhere HTTP/1.1\r\n\r\n', 400, 'HOST_MISSING'],
    ['GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: tea\r\n\r\n', 417, 'EXPECTATION_FAILED'],
    [`POST /v1/search HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: tea\r\n${body}`, 417, 'EXPECTATION_FAILED'],
  ] as const) {
    const answer = await answerTo(t, port, bytes);
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], bytes);
    assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.match(answer.headers.get('server-timing') ?? '', /^total;dur=/);
  }
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { code?: string }).code).filter((code) => code !== undefined),
    ['HOST_MISSING', 'HOST_MISSING', 'HOST_MISSING', 'EXPECTATION_FAILED', 'EXPECTATION_FAILED'],
  );
  assert.match((await app.inject('/metrics')).payload, /^trawl_errors_total\{code="HOST_MISSING"\} 3$/m);
});

test('HTTP/1.0 needs no Host header, and 100-continue is answered', async (t) => {
  const { port } = await serve(t);
  const old = await answerTo(t, port, 'GET /livez HTTP/1.0\r\n\r\n');
  assert.deepEqual([old.status, old.json], [200, { status: 'alive' }]);
  const socket = await openSocket(t, port);
  const [head = '', body = ''] = rawPost(ONE, 'connection: close\r\nexpect: 100-continue\r\n').split('\r\n\r\n');
  socket.write(`${head}\r\n\r\n`);
  const [interim] = (await once(socket, 'data')) as [Buffer];
  assert.match(interim.toString(), /^HTTP\/1\.1 100 /);
  socket.write(body);
  assert.match(await readToEnd(socket), /HTTP\/1\.1 200 OK/);
});

test('the answer to bytes that are not HTTP has the usual headers', async (t) => {
  const { port } = await serve(t);
  const { status, headers } = await answerTo(t, port, 'GARBAGE\r\n\r\n');
  assert.equal(status, 400);
  assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.equal(headers.get('cache-control'), 'no-store');
});
