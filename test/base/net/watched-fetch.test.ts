import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { TransientFailure } from '../../../src/base/net/retries.ts';
import { watchedFetch } from '../../../src/base/net/watched-fetch.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** As `fetch` of Node.js 22 behaves when a connection ends at a bad moment: nothing settles any more, whatever its signal says. */
function fetchThatStops(t: TestContext, at: 'headers' | 'body'): void {
  const body = () =>
    new ReadableStream({
      start: (controller) => controller.enqueue(new Uint8Array(3)),
      pull: () => new Promise<void>(() => undefined),
      cancel: () => new Promise<void>(() => undefined),
    });
  const { fetch } = globalThis;
  t.after(() => {
    globalThis.fetch = fetch;
  });
  globalThis.fetch = () =>
    at === 'headers' ? new Promise<Response>(() => undefined) : Promise.resolve(new Response(body()));
}

const options = (signal = new AbortController().signal) => ({ headers: {}, stallMs: 50, signal });

test('a request whose fetch never settles fails when nothing arrived for the time limit', async (t) => {
  fetchThatStops(t, 'headers');
  await assert.rejects(watchedFetch('http://127.0.0.1:1/', options()), (error) => {
    assert.ok(error instanceof TransientFailure);
    assert.match(error.message, /nothing arrived for 0\.05 s/);
    return true;
  });
});

test('a body whose read never settles fails so too, after the chunks that arrived', async (t) => {
  fetchThatStops(t, 'body');
  const got: number[] = [];
  const read = async (): Promise<void> => {
    const { body } = await watchedFetch('http://127.0.0.1:1/', options());
    for await (const chunk of body()) got.push(chunk.length);
  };
  await assert.rejects(read(), /nothing arrived for 0\.05 s/);
  assert.deepEqual(got, [3]);
});

test('a reader that ends early does not wait for the body to be cancelled, nor does one that drops it', async (t) => {
  fetchThatStops(t, 'body');
  const { body } = await watchedFetch('http://127.0.0.1:1/', options());
  for await (const _ of body()) break;
  (await watchedFetch('http://127.0.0.1:1/', options())).drop();
});

test('an abort ends a read that never settles as CANCELLED', async (t) => {
  fetchThatStops(t, 'body');
  const controller = new AbortController();
  const { body } = await watchedFetch('http://127.0.0.1:1/', { ...options(controller.signal), stallMs: 60_000 });
  const reading = (async () => {
    for await (const _ of body()) setImmediate(() => controller.abort());
  })();
  await assert.rejects(reading, trawlError('CANCELLED', /./));
});

test('a reply without a body has no bytes', async (t) => {
  const server = createServer((_request, reply) => reply.writeHead(204).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { status, body } = await watchedFetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    ...options(),
    stallMs: 60_000,
  });
  assert.equal(status, 204);
  for await (const _ of body()) assert.fail();
});

test('a failed connection says what helps: a server without TLS, and a proxy that Node.js does not use', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { HTTPS_PROXY, NODE_USE_ENV_PROXY } = process.env;
  t.after(() => {
    for (const [name, value] of Object.entries({ HTTPS_PROXY, NODE_USE_ENV_PROXY })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });
  const failure = async (url: string): Promise<string> => {
    const signal = AbortSignal.timeout(10_000);
    return watchedFetch(url, { headers: {}, stallMs: 5_000, signal }).then(
      () => 'answered',
      (error: Error) => error.message,
    );
  };
  assert.match(await failure(`https://127.0.0.1:${port}/`), /WRONG_VERSION_NUMBER: the server has no TLS; write http:/);
  assert.match(await failure('http://127.0.0.1:1/'), /Node\.js asks nothing of this port/);
  server.close();
  await once(server, 'close');
  delete process.env['NODE_USE_ENV_PROXY'];
  process.env['HTTPS_PROXY'] = 'http://127.0.0.1:1';
  assert.match(
    await failure(`http://127.0.0.1:${port}/`),
    /ECONNREFUSED: HTTPS_PROXY is set, but counts only with NODE_USE_ENV_PROXY=1/,
  );
  process.env['NODE_USE_ENV_PROXY'] = '1';
  assert.match(await failure(`http://127.0.0.1:${port}/`), /\(ECONNREFUSED\)$/);
});
