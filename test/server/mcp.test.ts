import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { pino } from 'pino';
import { TrawlError } from '../../src/base/errors.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import type { RecordedRequest, RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { FAKE_DOCUMENTS, FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { build, eventually, postTo, serve } from './build.ts';

const MCP = { mcp: { hosts: [] } };
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

interface ToolAnswer {
  readonly isError?: boolean;
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: Record<string, unknown>;
}

async function connected(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  t.after(() => client.close());
  return client;
}

/** After listing the tools, the SDK checks structuredContent against the output schema. */
async function call(client: Client, name: string, args: Record<string, unknown>): Promise<ToolAnswer> {
  await client.listTools();
  const answer = (await client.callTool({ name, arguments: args })) as unknown as ToolAnswer;
  if (answer.isError !== true) assert.deepEqual(JSON.parse(answer.content[0]!.text), answer.structuredContent);
  return answer;
}

test('an assistant finds search and fetch, both read-only', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), MCP);
  const client = await connected(t, url);
  assert.equal(client.getServerVersion()?.name, 'trawl');
  assert.match(client.getInstructions() ?? '', /fetch/);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]),
    [
      ['search', true],
      ['fetch', true],
    ],
  );
  assert.deepEqual(tools[0]!.inputSchema.required, ['query']);
  assert.deepEqual(tools[1]!.inputSchema.required, ['id']);
});

test('search gives id, title, url and text of each passage, best first', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), MCP);
  const client = await connected(t, url);
  const { structuredContent } = await call(client, 'search', { query: '', k: 5 });
  const results = structuredContent!.results as { id: string; title: string; url: string; text: string }[];
  assert.deepEqual(
    results.map(({ id, title, url }) => [id, title, url]),
    [
      ['0', 'Paul Walker', 'trawl://fake-sample/0'],
      ['s-1', 'Brooklyn Bridge', 'https://example.org/b'],
      ['9007199254740993', 'Big id', 'trawl://fake-sample/9007199254740993'],
      ['3', '3', 'trawl://fake-sample/3'],
      ['4', '<img src=x onerror=alert(1)>', 'trawl://fake-sample/4'],
    ],
  );
  assert.equal(results[0]!.text, 'Paul William Walker IV was an American actor.');
});

test('fetch returns every passage that search found, by id and by URL', async (t) => {
  const long = JSON.stringify({ id: 'long', title: 'Long', text: `${'word '.repeat(500)}needle`, source: 'a book' });
  const nameless = [
    JSON.stringify({ title: 'No id', text: 'Found by its title.' }),
    JSON.stringify({ url: 'https://example.org/n', text: 'Found by its URL.' }),
    JSON.stringify({ contents: 'Found by its row.' }),
  ];
  const { url } = await serve(t, new FakeRetriever({ documents: [...FAKE_DOCUMENTS, long, ...nameless] }), MCP);
  const client = await connected(t, url);
  const { structuredContent } = await call(client, 'search', { query: 'needle', k: 9 });
  const results = structuredContent!.results as { id: string; title: string; url: string; text: string }[];
  assert.deepEqual(results.flatMap(({ id, text }) => (text.startsWith('Found by') ? [id] : [])).sort(), [
    'No id',
    'https://example.org/n',
    'row 8',
  ]);
  assert.equal(results.length, 9);
  for (const { id, title, url } of results) {
    const fetched = (await call(client, 'fetch', { id })).structuredContent!;
    assert.deepEqual([fetched.id, fetched.title, fetched.url], [id, title, url]);
    const again = (await call(client, 'fetch', { id: url })).structuredContent!;
    assert.deepEqual({ ...again, id }, fetched);
  }
  const snippet = results.find(({ id }) => id === 'long')!.text;
  assert.ok(snippet.length <= 400);
  assert.match(snippet, /^….*needle$/);
  const { text, metadata } = (await call(client, 'fetch', { id: 'long' })).structuredContent as {
    text: string;
    metadata: Record<string, string>;
  };
  assert.equal(text.length, 2_506);
  assert.deepEqual(metadata, { source: 'a book', index: 'fake-sample', generation: 'generation-1', rows: '5' });
  const byUrl = await call(client, 'fetch', { id: 'https://example.org/b' });
  assert.equal(byUrl.structuredContent!.title, 'Brooklyn Bridge');
});

test('searches are counted and recorded like those of other routes', async (t) => {
  const recorded: unknown[] = [];
  const record = { record: (request: object, { queries, k }: RecordedSearch) => recorded.push([request, queries, k]) };
  const { url, app } = await serve(t, new FakeRetriever(), { ...MCP, record });
  await call(await connected(t, url), 'search', { query: 'bridge', k: 2 });
  const [[request, queries, k]] = recorded as [[RecordedRequest, string[], number]];
  assert.deepEqual(
    [request.dialect, request.index, request.generation, queries, k],
    ['mcp', 'fake-sample', 'generation-1', ['bridge'], 2],
  );
  const { payload } = await app.inject('/metrics');
  assert.match(payload, /^trawl_requests_total\{dialect="mcp",status="200"\} [1-9]/m);
  assert.match(payload, /^trawl_query_rescored_rows_count 1$/m);
});

test('the log has tool and code of a failure, but no arguments', async (t) => {
  const lines: string[] = [];
  const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
  const outcome = (): QueryOutcome => ({ ok: false, error: new TrawlError('INTERNAL', 'a bug') });
  const { url } = await serve(t, new FakeRetriever({ outcome }), { ...MCP, logger });
  const client = await connected(t, url);
  await call(client, 'fetch', { id: 'whatwaslookedfor' });
  await call(client, 'search', { query: 'whatwaslookedfor' });
  const logged = lines.map((line) => JSON.parse(line) as { level: number; tool?: string; code?: string });
  assert.deepEqual(
    logged.flatMap(({ level, tool, code }) => (tool === undefined ? [] : [[level, tool, code]])),
    [
      [30, 'fetch', 'NOT_FOUND'],
      [50, 'search', 'INTERNAL'],
    ],
  );
  assert.ok(!lines.join('').includes('whatwaslookedfor'));
});

test('a passage whose id has a lone surrogate is found', async (t) => {
  const documents = ['{"id":"\\ud83d","text":"Half a character."}'];
  const { url } = await serve(t, new FakeRetriever({ documents }), MCP);
  const { structuredContent } = await call(await connected(t, url), 'search', { query: 'half' });
  assert.equal((structuredContent!.results as { url: string }[])[0]!.url, 'trawl://fake-sample/%EF%BF%BD');
});

test('passages with the same title are fetched together by the title', async (t) => {
  const documents = ['First.', 'Second.'].map((text, i) => JSON.stringify({ id: `${i}`, title: 'Both', text }));
  const { url } = await serve(t, new FakeRetriever({ documents }), MCP);
  const { structuredContent } = await call(await connected(t, url), 'fetch', { id: 'Both' });
  assert.equal(structuredContent!.text, 'First.\nSecond.');
  assert.equal((structuredContent!.metadata as { rows: string }).rows, '0,1');
});

test('a question is embedded before its query', async (t) => {
  const retriever = new FakeRetriever();
  const { url } = await serve(t, retriever, MCP);
  await call(await connected(t, url), 'search', { query: 'its length', question: 'How long is the Vltava?' });
  assert.deepEqual(retriever.calls[0]!.queries, [{ question: 'How long is the Vltava?', query: 'its length' }]);
  assert.equal(retriever.calls[0]!.k, 10);
});

test('the assistant gets the message of an error, but no details of a bug', async (t) => {
  const retriever = new FakeRetriever({
    outcome: (input) =>
      input === 'bad' ? { ok: false, error: new TrawlError('INTERNAL', 'secret detail') } : undefined,
  });
  const { url } = await serve(t, retriever, { ...MCP, maxQueryChars: 1_000 });
  const client = await connected(t, url);
  const expected = new Map<[string, Record<string, unknown>], RegExp>([
    [['search', {}], /^INVALID_REQUEST: .*query/],
    [['search', { query: 'a', k: 0 }], /^INVALID_REQUEST: arguments\.k: /],
    [['search', { query: 'a', k: 101 }], /^INVALID_REQUEST: arguments\.k: .*100/],
    [['search', { query: 'a'.repeat(1_001) }], /^[A-Z_]+: .*1000/],
    [['search', { query: ['a'] }], /^INVALID_REQUEST: .*string/],
    [['search', { query: 'a', limit: 3 }], /^INVALID_REQUEST: .*limit/],
    [['search', { query: 'bad' }], /^INTERNAL: The server failed/],
    [['fetch', { id: 'none' }], /^NOT_FOUND: .*"none".*search/],
    [['fetch', { id: 'row 5' }], /^NOT_FOUND/],
    [['fetch', { id: 'trawl://another/0' }], /^NOT_FOUND/],
    [['fetch', { id: 'trawl://fake-sample/%' }], /^NOT_FOUND/],
    [['delete', { id: '0' }], /Tool "delete" not found. Expected search or fetch/],
  ]);
  for (const [[name, args], message] of expected) {
    const { isError, content } = await call(client, name, args);
    assert.equal(isError, true);
    assert.match(content[0]!.text, message);
  }
});

test('concurrent assistants get their own results', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), MCP);
  const clients = await Promise.all(Array.from({ length: 8 }, () => connected(t, url)));
  const queries = clients.map((_, i) => 'q'.repeat(i));
  const together = await Promise.all(clients.map((client, i) => call(client, 'search', { query: queries[i], k: 3 })));
  for (const [i, client] of clients.entries()) {
    assert.deepEqual(together[i], await call(client, 'search', { query: queries[i], k: 3 }));
  }
});

test('an assistant that disconnects cancels its search', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { url } = await serve(t, retriever, MCP);
  const gone = new AbortController();
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'search', arguments: { query: 'a' } },
  };
  const asked = fetch(`${url}/mcp`, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify(message),
    signal: gone.signal,
  });
  await eventually(() => retriever.calls.length === 1);
  gone.abort();
  await assert.rejects(asked);
  await eventually(() => retriever.calls[0]?.signal?.aborted === true);
});

test('a missed deadline is the same error as on other routes', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const app = build(t, retriever, { ...MCP, deadlineMs: 20 });
  const message = { ...PING, method: 'tools/call', params: { name: 'search', arguments: { query: 'a' } } };
  const ours = await postTo(app, '/mcp', message, HEADERS);
  const theirs = await postTo(app, '/v1/search', { queries: ['a'] });
  assert.deepEqual([ours.status, ours.json], [theirs.status, theirs.json]);
  assert.ok(ours.status >= 500);
});

test('the route exists only if configured, and only for POST and event streams', async (t) => {
  const without = build(t);
  assert.equal((await postTo(without, '/mcp', PING, HEADERS)).status, 404);
  const app = build(t, new FakeRetriever(), MCP);
  assert.deepEqual((await postTo(app, '/mcp', PING, HEADERS)).json, { jsonrpc: '2.0', id: 1, result: {} });
  const events = { accept: 'text/event-stream', 'mcp-protocol-version': '2025-06-18' };
  for (const [method, headers, allow] of [
    ['GET', {}, 'POST, OPTIONS'],
    // A client of streamable HTTP asks for a stream of the server's own messages, which there are not.
    ['GET', events, 'POST, OPTIONS'],
    ['DELETE', {}, 'GET, POST, OPTIONS'],
  ] as const) {
    const reply = await app.inject({ method, url: '/mcp', headers });
    assert.deepEqual([reply.statusCode, reply.headers.allow], [405, allow]);
  }
});

test('a body that is no message is refused as the protocol requires', async (t) => {
  const app = build(t, new FakeRetriever(), MCP);
  const status = async (body: unknown, headers: Record<string, string> = HEADERS): Promise<number> =>
    (await postTo(app, '/mcp', body, headers)).status;
  assert.equal(await status('{'), 422);
  assert.equal(await status({ hello: 1 }), 400);
  assert.equal(await status(PING, { ...HEADERS, accept: 'text/plain' }), 406);
  assert.equal(await status(PING, { ...HEADERS, 'content-type': 'text/plain' }), 415);
  assert.equal(await status(PING, { ...HEADERS, 'mcp-protocol-version': '1999-01-01' }), 400);
  assert.equal(await status({ jsonrpc: '2.0', method: 'notifications/initialized' }), 202);
  const unknown = await postTo(app, '/mcp', { ...PING, method: 'resources/list' }, HEADERS);
  assert.equal((unknown.json as { error: { code: number } }).error.code, -32_601);
});

test('a call that its own batch cancels is answered', async (t) => {
  const app = build(t, new FakeRetriever(), MCP);
  const search = { ...PING, method: 'tools/call', params: { name: 'search', arguments: { query: 'a' } } };
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: PING.id } };
  for (const batch of [
    [search, cancel],
    [cancel, search],
  ]) {
    const { status, json } = await postTo(app, '/mcp', batch, HEADERS);
    assert.deepEqual([status, (json as { id: number }).id], [200, PING.id]);
  }
});

test('a starting server answers 503 with Retry-After', async (t) => {
  const { status, headers } = await postTo(build(t, new IndexRegistry(), MCP), '/mcp', PING, HEADERS);
  assert.equal(status, 503);
  assert.equal(headers['retry-after'], '2');
});

/** A POST with headers that fetch does not allow to set. */
function postAs(port: number, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers: { ...HEADERS, ...headers } },
      (response) => resolve(response.resume().statusCode!),
    );
    request.on('error', reject);
    request.end(JSON.stringify(PING));
  });
}

test('pages of other sites and unknown host names on loopback (DNS rebinding) are refused', async (t) => {
  const retriever = new FakeRetriever();
  const { port } = await serve(t, retriever, { mcp: { hosts: ['search.example.org'] } });
  const status = (headers: Record<string, string>): Promise<number> => postAs(port, headers);
  for (const host of ['localhost', `127.0.0.1:${port}`, '[::1]:8000', 'search.example.org', 'SEARCH.example.org:443']) {
    assert.equal(await status({ host }), 200, host);
  }
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    assert.equal(await status({ host }), 403, host);
  }
  for (const origin of ['http://localhost:6274', 'http://127.0.0.1', 'https://search.example.org']) {
    assert.equal(await status({ origin }), 200, origin);
  }
  for (const origin of ['http://evil.example', 'null', 'http://localhost.evil.example', 'file://', '', 'x']) {
    assert.equal(await status({ origin }), 403, origin);
  }
  assert.equal(retriever.calls.length, 0);
});
