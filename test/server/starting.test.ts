import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { TrawlError } from '../../src/base/errors.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, openSocket, type Posted, post, postTo, serve } from './build.ts';

const BATCH = { queries: ['a'], topk: 1 };
const SINGLE = { query: 'a', topk: 1 };

/** A holder that opens its index when `open` or `fail` is called. */
function starting(): { holder: IndexRegistry; open(): Promise<void>; fail(error: Error): Promise<void> } {
  let resolve!: (retriever: OpenRetriever) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<OpenRetriever>((...settle) => ([resolve, reject] = settle));
  const holder = IndexRegistry.opening([{ name: 'fake-sample', folder: '/nowhere' }], () => promise);
  const opened = holder.open().catch(() => undefined);
  return {
    holder,
    open() {
      resolve(new FakeRetriever());
      return opened;
    },
    fail(error) {
      reject(error);
      return opened;
    },
  };
}

/** Sends a request and notes whether it was answered. */
function sent(answer: Promise<Posted>): { answer: Promise<Posted>; answered: boolean } {
  const request = { answer, answered: false };
  void answer.then(() => (request.answered = true));
  return request;
}

test('a request of a client that does not repeat it waits until the index is open, while /readyz says 503', async (t) => {
  const { holder, open } = starting();
  const app = build(t, holder);
  const held = [BATCH, {}].map((body) => sent(post(app, body)));
  const ready = await app.inject({ url: '/readyz' });
  assert.deepEqual([ready.statusCode, (ready.json() as { status: string }).status], [503, 'starting']);
  assert.equal((await app.inject({ url: '/health' })).statusCode, 503);
  assert.deepEqual(
    held.map(({ answered }) => answered),
    [false, false],
  );
  await open();
  const [batch, probe] = await Promise.all(held.map(({ answer }) => answer));
  assert.equal(batch!.status, 200);
  assert.ok('result' in (batch!.json as object));
  assert.equal(
    probe!.status,
    422,
    'also a body that is refused, with which launch scripts ask whether the server is up',
  );
});

test('requests of clients that repeat them are refused at once while the server starts', async (t) => {
  const { holder } = starting();
  const app = build(t, holder);
  const answers = [await post(app, SINGLE), await postTo(app, '/v1/search', BATCH)];
  for (const { status, json, headers } of answers) {
    assert.equal(status, 503);
    assert.equal(headers['retry-after'], '2');
    assert.equal(errorOf(json).code, 'NOT_READY');
  }
});

test('every dialect holds its example during the start, or refuses it', async (t) => {
  for (const dialect of DIALECTS.filter(({ name, method }) => name !== 'elasticsearch' && method === 'POST')) {
    const { holder, open } = starting();
    const sharesPath = DIALECTS.some(({ path, name }) => path === dialect.path && name !== dialect.name);
    const app = build(t, holder, { dialects: sharesPath ? [dialect.name] : [] });
    const request = sent(postTo(app, dialect.path, dialect.example));
    if (dialect.holdMs > 0) {
      await app.inject({ url: '/readyz' });
      assert.equal(request.answered, false, dialect.name);
      await open();
    }
    assert.equal((await request.answer).status === 503, dialect.holdMs === 0, dialect.name);
  }
});

test('a request is refused once it has waited as long as the client does, or as the server allows', async (t) => {
  const { holder } = starting();
  for (const [config, headers] of [
    [{ holdMs: 0 }, {}],
    [{ holdMs: 20 }, {}],
    [{ deadlineMs: 20 }, {}],
    [{}, { 'x-request-timeout-ms': '20' }],
  ] as const) {
    const limited = 'holdMs' in config;
    const json = { 'content-type': 'application/json' };
    const answer = await post(build(t, holder, config), BATCH, { ...json, ...headers });
    assert.equal(answer.status, 503);
    assert.equal(errorOf(answer.json).code, limited ? 'NOT_READY' : 'DEADLINE_EXCEEDED');
    assert.equal(answer.headers['retry-after'], '2');
  }
});

test('requests that wait for an index that cannot be opened are answered 503 with the code of its error, and so are later ones', async (t) => {
  const { holder, fail } = starting();
  const app = build(t, holder);
  const held = post(app, BATCH);
  await app.inject({ url: '/readyz' });
  await fail(new TrawlError('INDEX_FILE_MISSING', '/secret/place is missing.'));
  for (const { status, json, text } of [await held, await post(app, BATCH), await post(app, SINGLE)]) {
    assert.equal(status, 503);
    assert.equal(errorOf(json).code, 'NOT_READY');
    assert.match(errorOf(json).message, /INDEX_FILE_MISSING/);
    assert.doesNotMatch(text, /secret/);
  }
});

test('a server that stops while it starts answers the requests that wait', async (t) => {
  const { holder } = starting();
  const app = build(t, holder);
  const held = post(app, BATCH);
  await app.inject({ url: '/readyz' });
  holder.stop();
  const { status, json, headers } = await held;
  assert.deepEqual([status, headers['connection']], [503, 'close']);
  assert.match(errorOf(json).message, /is stopping/);
});

test('requests that wait count towards the limits of their number and of the memory for bodies until their clients leave', async (t) => {
  const { holder, open } = starting();
  const fewer = build(t, holder, { maxConnections: 1 });
  const held = post(fewer, BATCH);
  await fewer.inject({ url: '/readyz' });
  assert.equal((await post(fewer, BATCH)).status, 503);

  const { app, port } = await serve(t, holder, { maxBodyBytesInFlight: 100 });
  const bodyBytes = async (): Promise<number> =>
    Number(/^trawl_body_bytes (\d+)$/m.exec((await app.inject({ url: '/metrics' })).payload)![1]);
  const body = JSON.stringify({ queries: ['x'.repeat(100)] });
  const socket = await openSocket(t, port);
  const head = `host: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
  socket.write(`POST /retrieve HTTP/1.1\r\n${head}\r\n\r\n${body}`);
  while ((await bodyBytes()) < body.length) await nextIteration();
  assert.equal(errorOf((await post(app, BATCH)).json).code, 'OVERLOADED');
  socket.destroy();
  while ((await bodyBytes()) > 0) await nextIteration();
  await open();
  assert.equal((await held).status, 200);
});
