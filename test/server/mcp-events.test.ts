import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import { EventStreams } from '../../src/server/mcp/event-streams.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { eventually, serve } from './build.ts';

const MCP = { mcp: { hosts: [] } };
const KEY = 'a-key-of-sixteen-or-more';

async function connected(t: TestContext, url: string, headers: Record<string, string> = {}): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new SSEClientTransport(new URL(url), { requestInit: { headers } }));
  t.after(() => client.close());
  return client;
}

/** The events of a stream, read by hand. */
async function openStream(t: TestContext, url: string, headers: Record<string, string> = {}) {
  const gone = new AbortController();
  t.after(() => gone.abort());
  const response = await fetch(`${url}/mcp`, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: gone.signal,
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<{ event: string; data: string } | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const [event, data] = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        return { event: event!.replace('event: ', ''), data: data!.replace('data: ', '') };
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
    }
  };
  const { event, data: address } = (await next())!;
  assert.equal(event, 'endpoint');
  const post = (message: unknown, more: Record<string, string> = {}): Promise<Response> =>
    fetch(new URL(address, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers, ...more },
      body: JSON.stringify(message),
    });
  return { next, post, address, leave: () => gone.abort() };
}

const SEARCH = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'search', arguments: { query: 'a' } } };

test('a client with an event stream gets the answers of streamable HTTP, also under a path that names the index', async (t) => {
  const recorded: RecordedSearch[] = [];
  const record = { record: (_: object, search: RecordedSearch) => void recorded.push(search) };
  const { url } = await serve(t, new FakeRetriever(), { ...MCP, record });
  const streamable = new Client({ name: 'test', version: '1' });
  await streamable.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  t.after(() => streamable.close());
  const call = { name: 'search', arguments: { query: 'bridge', k: 3 } };
  const expected = [await streamable.listTools(), await streamable.callTool(call)];
  for (const path of ['/mcp', '/indexes/fake-sample/mcp', '/mcp?index=fake-sample']) {
    const client = await connected(t, `${url}${path}`);
    assert.deepEqual([await client.listTools(), await client.callTool(call)], expected, path);
    assert.equal(client.getServerVersion()?.name, 'trawl');
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, i) => client.callTool({ ...call, arguments: { query: 'q'.repeat(i) } })),
    );
    for (const [i, answer] of many.entries()) {
      assert.deepEqual(answer, await streamable.callTool({ ...call, arguments: { query: 'q'.repeat(i) } }));
    }
  }
  assert.equal(recorded.length, 1 + 3 * (1 + 20 + 20));
});

test('the stream and each message need a key', async (t) => {
  const keys = AccessKeys.parse(`read:${KEY}\n`, 'keys');
  const { url } = await serve(t, new FakeRetriever(), { ...MCP, keys });
  const accept = { accept: 'text/event-stream' };
  assert.equal((await fetch(`${url}/mcp`, { headers: accept })).status, 401);
  const { post, next } = await openStream(t, url, { authorization: `Bearer ${KEY}` });
  assert.equal((await post(SEARCH, { authorization: 'Bearer wrong' })).status, 401);
  assert.equal((await post(SEARCH)).status, 202);
  assert.match((await next())!.data, /"id":7/);
});

test('a message stays within the view of its path: an unknown view is an error in the stream', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), MCP);
  const { post, next, address } = await openStream(t, `${url}/views/dev`);
  assert.match(address, /^\/views\/dev\/mcp\?session_id=/);
  assert.equal((await post(SEARCH)).status, 202);
  assert.match((await next())!.data, /"code":-32603,"message":"NOT_FOUND: The index fake-sample has no view/);
});

test('pages of other sites open no stream', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), MCP);
  const headers = { accept: 'text/event-stream', origin: 'https://evil.example' };
  assert.equal((await fetch(`${url}/mcp`, { headers })).status, 403);
});

test('a client that leaves its stream cancels its searches, and the stream takes no more messages', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { url } = await serve(t, retriever, MCP);
  const { post, leave } = await openStream(t, url);
  assert.equal((await post(SEARCH)).status, 202);
  await eventually(() => retriever.calls.length === 1);
  leave();
  await eventually(() => retriever.calls[0]?.signal?.aborted === true);
  const { status } = await post(SEARCH);
  assert.equal(status, 404);
  const forged = await fetch(`${url}/mcp?session_id=none`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(SEARCH),
  });
  assert.equal(forged.status, 404);
});

test('the deadline of a message ends its search with an error in the stream, which stays open', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { url } = await serve(t, retriever, MCP);
  const { post, next } = await openStream(t, url);
  assert.equal((await post(SEARCH, { 'x-request-timeout-ms': '30' })).status, 202);
  const { error, id } = JSON.parse((await next())!.data) as { id: number; error: { message: string } };
  assert.equal(id, 7);
  assert.match(error.message, /^DEADLINE_EXCEEDED: .*30 ms/);
  assert.equal((await post({ jsonrpc: '2.0', id: 8, method: 'ping' })).status, 202);
  assert.deepEqual(JSON.parse((await next())!.data), { jsonrpc: '2.0', id: 8, result: {} });
});

test('a server that stops answers the searches that run, and then ends the stream', async (t) => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const retriever = new FakeRetriever({ before: () => held });
  const { url, app } = await serve(t, retriever, MCP);
  const busy = await openStream(t, url);
  const idle = await openStream(t, url);
  assert.equal((await busy.post(SEARCH)).status, 202);
  await eventually(() => retriever.calls.length === 1);
  const closed = app.close();
  assert.equal(await idle.next(), undefined);
  release();
  assert.match((await busy.next())!.data, /"id":7/);
  assert.equal(await busy.next(), undefined);
  await closed;
});

test('a client that does not read its stream loses it, and its answers do not stay in memory', async () => {
  const streams = new EventStreams();
  let id = '';
  const output = streams.open((given) => {
    id = given;
    return '/mcp';
  });
  const stream = streams.find(id)!;
  const answer = JSON.stringify('x'.repeat(1_000_000));
  let sent = 0;
  while (!stream.signal.aborted && sent < 100) {
    await stream.run(async () => [answer]);
    sent++;
    await setImmediate();
  }
  assert.ok(sent > 10 && sent < 20, `${sent} answers of a megabyte`);
  assert.equal(output.destroyed, true);
  assert.equal(streams.find(id), undefined);
});
