import { type TestContext, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { ServerMetrics } from '../../src/server/metrics/server-metrics.ts';
import type { QueryOrigin } from '../../src/server/recording/query-origin.ts';
import { openingLines } from '../../src/server/recording/record-line.ts';
import type { RecordedOpening, RecordedRequest, RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import assert from '../helpers/assert.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, postTo, serve } from './build.ts';
import { articleIndex, ask, elasticsearch, withoutWords } from './elasticsearch/elasticsearch-server.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

interface Recording {
  readonly app: FastifyInstance;
  readonly config: Partial<ServerConfig>;
  readonly metrics: ServerMetrics;
  readonly recorded: [RecordedRequest, RecordedSearch][];
  origins(): readonly (readonly QueryOrigin[] | undefined)[];
}

function recording(t: TestContext): Recording {
  const recorded: [RecordedRequest, RecordedSearch][] = [];
  const metrics = new ServerMetrics();
  const record = { record: (...each: [RecordedRequest, RecordedSearch]) => void recorded.push(each) };
  const config = { metrics, record };
  const app = build(t, new FakeRetriever(), config);
  return { app, config, metrics, recorded, origins: () => recorded.map(([, { origins }]) => origins) };
}

test("Search-R1's request may have lists beside its queries, which do not change the reply", async (t) => {
  const { app, origins } = recording(t);
  const body = { queries: ['a', 'b'], topk: 1, return_scores: true };
  const record = { trajectory: ['t1', 't2'], turn: 2, question_id: [7, 8], split: 'train', tags: [{ x: 1 }, null] };
  const plain = await postTo(app, '/retrieve', body);
  const answer = await postTo(app, '/retrieve', { ...body, record });
  assert.deepEqual(answer.json, plain.json);
  assert.deepEqual(origins()[1], [
    { trajectory: 't1', turn: 2, questionId: '7', split: 'train', tags: { x: '1' } },
    { trajectory: 't2', turn: 2, questionId: '8', split: 'train' },
  ]);
});

test('headers and URL parameters work on every search route', async (t) => {
  const { app, origins, recorded } = recording(t);
  const headers = { ...JSON_TYPE, 'x-trawl-trajectory': 't', baggage: 'trawl-turn=1' };
  for (const [path, body] of [
    ['/retrieve', { queries: ['a'] }],
    ['/retrieve', { query: 'a' }],
    ['/queries', { queries: ['a'], k: 1 }],
    ['/search', { query: 'a' }],
    ['/v1/search', { queries: ['a'] }],
    ['/embed_and_retrieve', { prompts: ['a'], top_k: 1 }],
  ] as const) {
    const answer = await postTo(app, `${path}?trawl-policy=run-1&trawl-step=4`, body, headers);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers['x-trawl-record-ignored'], undefined);
    assert.deepEqual(origins().at(-1), [{ trajectory: 't', turn: 1, policy: 'run-1', step: 4 }], path);
  }
  assert.equal(recorded.length, 6);
});

test('values that cannot be recorded fail no search: the reply names them and they are counted', async (t) => {
  const { app, origins, metrics } = recording(t);
  const record = { trajectory: ['only one'], turn: ['x', 2], 'bad\nname é': 1 };
  const answer = await postTo(
    app,
    '/retrieve',
    { queries: ['a', 'b'], record },
    { ...JSON_TYPE, 'x-trawl-step': '-1' },
  );
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(origins(), [[{}, { turn: 2 }]]);
  assert.equal(
    answer.headers['x-trawl-record-ignored'],
    'x-trawl-step (type), record.trajectory (length), record.turn.0 (type), record.bad?name?? (unknown)',
  );
  const text = await metrics.text();
  for (const [reason, count] of Object.entries({ type: 2, length: 1, unknown: 1, characters: 0, 'too-long': 0 })) {
    assert.match(text, new RegExp(`^trawl_unrecorded_values_total\\{reason="${reason}"\\} ${count}$`, 'm'));
  }
});

test('/v1/search refuses in its body what it cannot record, whether it records or not', async (t) => {
  for (const app of [recording(t).app, build(t, new FakeRetriever())]) {
    for (const [record, loc] of [
      [{ turn: [1] }, ['body', 'record', 'turn']],
      [{ turn: -1 }, ['body', 'record', 'turn']],
      [{ trajectory: 'x'.repeat(300) }, ['body', 'record', 'trajectory']],
      [{ policy: ['a', 'b\nc'] }, ['body', 'record', 'policy', 1]],
      [{ tags: { a: {} } }, ['body', 'record', 'tags']],
      [{ question_id: 'snake' }, ['body', 'record', 'question_id']],
      ['x', ['body', 'record']],
    ] as const) {
      const answer = await postTo(app, '/v1/search', { queries: ['a', 'b'], record });
      assert.deepEqual([answer.status, errorOf(answer.json).code], [422, 'INVALID_REQUEST'], JSON.stringify(record));
      assert.deepEqual((errorOf(answer.json).detail as { loc: unknown }[])[0]?.loc, loc);
    }
  }
});

test('/v1/search records the values of its body', async (t) => {
  const { app, origins } = recording(t);
  const record = { trajectory: ['a', 7], turn: [1, null], questionId: 'q', tags: { arm: 'b' }, question: 'Original?' };
  const answer = await postTo(app, '/v1/search', { queries: ['a', 'b'], record });
  assert.equal(answer.status, 200, answer.text);
  const shared = { questionId: 'q', tags: { arm: 'b' }, question: 'Original?' };
  assert.deepEqual(origins(), [
    [
      { trajectory: 'a', turn: 1, ...shared },
      { trajectory: '7', ...shared },
    ],
  ]);
});

test('a server without --record reads none of it', async (t) => {
  const answer = await postTo(build(t, new FakeRetriever()), '/retrieve', { queries: ['a'], record: 7 });
  assert.equal(answer.status, 200);
  assert.equal(answer.headers['x-trawl-record-ignored'], undefined);
});

test("Elasticsearch's searches take headers and URL parameters, which it would otherwise refuse", {
  skip: withoutWords,
}, async (t) => {
  const { config, origins } = recording(t);
  const retriever = await articleIndex(t, [{ id: '1', title: 'Bridge', text: 'A bridge in New York.' }]);
  const app = elasticsearch(t, retriever, config);
  const headers = { 'x-trawl-trajectory': 't' };
  const search = { query: { match: { text: 'bridge' } } };
  const one = await ask(app, 'POST', '/wiki_en/_search?trawl-turn=2', search, headers);
  assert.equal(one.status, 200, one.text);
  const lines = `{}\n${JSON.stringify(search)}\n`.repeat(2);
  const several = await ask(app, 'POST', '/wiki_en/_msearch?trawl-turn=3', lines, {
    ...headers,
    'content-type': 'application/x-ndjson',
  });
  assert.equal(several.status, 200, several.text);
  const [first, ...others] = [2, 3, 3].map((turn) => [{ trajectory: 't', turn }]);
  assert.deepEqual(origins(), [first, ...others]);
});

test('a tool call over MCP takes headers', async (t) => {
  const { config, origins } = recording(t);
  const app = build(t, new FakeRetriever(), { ...config, mcp: { hosts: [] } });
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search', arguments: { query: 'q' } } };
  const headers = {
    ...JSON_TYPE,
    accept: 'application/json, text/event-stream',
    host: 'localhost',
    'x-trawl-trajectory': 't',
    'x-trawl-turn': 'x',
  };
  const answer = await postTo(app, '/mcp', call, headers);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers['x-trawl-record-ignored'], 'x-trawl-turn (type)');
  assert.deepEqual(origins(), [[{ trajectory: 't' }]]);
});

/** A server that records openings. */
function openingsOf(t: TestContext, config: Partial<ServerConfig> = {}) {
  const opened: [RecordedRequest, readonly RecordedOpening[]][] = [];
  const searches: unknown[] = [];
  const record = {
    record: (...each: unknown[]) => void searches.push(each),
    recordOpenings: (...each: [RecordedRequest, readonly RecordedOpening[]]) => void opened.push(each),
  };
  return { app: build(t, new FakeRetriever(), { record, ...config }), opened, searches };
}

const OPENER = { ...JSON_TYPE, 'x-trawl-trajectory': 't', 'x-trawl-turn': '3' };
const ORIGIN = { trajectory: 't', turn: 3 };

test('a passage that is opened by its id is recorded with its origin, also one that is not found', async (t) => {
  const { app, opened, searches } = openingsOf(t);
  for (const [id, status] of [
    ['9007199254740993', 200],
    ['none', 404],
  ] as const) {
    const url = `/v1/passages/${id}?trawl-policy=run-1`;
    assert.equal((await app.inject({ url, headers: OPENER })).statusCode, status);
  }
  const origin = { ...ORIGIN, policy: 'run-1' };
  assert.deepEqual(
    opened.map(([, openings]) => openings),
    [
      [{ opened: '9007199254740993', passages: [{ row: 2, idJson: '9007199254740993' }], origin }],
      [{ opened: 'none', passages: [], origin }],
    ],
  );
  const [request] = opened[0]!;
  assert.deepEqual([request.dialect, request.index, request.generation], ['passage', 'fake-sample', 'generation-1']);
  assert.deepEqual(searches, []);
});

test('pages and passages of one request are openings of their own, with the values of its body', async (t) => {
  const { app, opened } = openingsOf(t);
  const urls = ['https://example.org/b', 'Paul Walker', 'nowhere'];
  const record = { trajectory: ['a', 'b', null], turn: 4 };
  assert.equal((await postTo(app, '/access', { urls, record })).status, 200);
  assert.equal((await postTo(app, '/v1/passages', { ids: ['s-1'], rows: [3] }, OPENER)).status, 200);
  const [pages, passages] = opened.map(([, openings]) => openings);
  assert.deepEqual(pages, [
    { opened: urls[0], passages: [{ row: 1, idJson: '"s-1"' }], origin: { trajectory: 'a', turn: 4 } },
    { opened: urls[1], passages: [{ row: 0, idJson: '"0"' }], origin: { trajectory: 'b', turn: 4 } },
    { opened: urls[2], passages: [], origin: { turn: 4 } },
  ]);
  assert.deepEqual(passages, [
    { opened: 's-1', passages: [{ row: 1, idJson: '"s-1"' }], origin: ORIGIN },
    { opened: 'row 3', passages: [{ row: 3, idJson: '3' }], origin: ORIGIN },
  ]);
});

for (const [tools, name, args] of [
  ['trawl', 'fetch', { id: 's-1' }],
  ['browsecomp-plus', 'get_document', { docid: 's-1' }],
  ['dr-tulu', 'crawl4ai_fetch_webpage_content', { url: 'https://example.org/b' }],
] as const) {
  test(`the tool ${name} of MCP records what it opens`, async (t) => {
    const { app, opened } = openingsOf(t, { mcp: { hosts: [], tools } });
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
    const headers = { ...OPENER, accept: 'application/json, text/event-stream', host: 'localhost' };
    assert.equal((await postTo(app, '/mcp', call, headers)).status, 200);
    const [name1] = Object.values(args);
    assert.deepEqual(
      opened.map(([{ dialect }, openings]) => [dialect, openings]),
      [['mcp', [{ opened: name1, passages: [{ row: 1, idJson: '"s-1"' }], origin: ORIGIN }]]],
    );
  });
}

for (const [path, body] of [
  ['/open', { docid: 's-1', url: null }],
  ['/get_content', { url: 'https://example.org/b' }],
] as const) {
  test(`${path} records the document that it opens, and its trace as trajectory`, async (t) => {
    const { app, opened } = openingsOf(t);
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const headers = { ...JSON_TYPE, traceparent: `00-${trace}-00f067aa0ba902b7-01`, 'x-trawl-turn': 'x' };
    const answer = await postTo(app, path, body, headers);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers['x-trawl-record-ignored'], 'x-trawl-turn (type)');
    const [opening] = opened[0]![1];
    assert.deepEqual(opening!.passages, [{ row: 1, idJson: '"s-1"' }]);
    assert.deepEqual([opening!.origin?.trajectory, opening!.origin?.trajectoryFrom], [trace, 'traceparent']);
    const [line] = openingLines('2026-11-23T01:02:03.456Z', opened[0]![0], opened[0]![1]);
    assert.match(line!, /^\{"time":.*"rows":\[1\],"ids":\["s-1"\]\}\n$/);
  });
}

test('equal questions on one connection get one guessed trajectory, and on another a new one', async (t) => {
  const { config, origins } = recording(t);
  const { port } = await serve(t, new FakeRetriever(), config);
  const ask = async (question: string, headers: Record<string, string> = {}): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}/retrieve`, {
      method: 'POST',
      headers: { ...JSON_TYPE, ...headers },
      body: JSON.stringify({ query: 'q', question }),
    });
    assert.equal(response.status, 200);
    await response.text();
  };
  await ask('A');
  await ask('B');
  await ask('A', { connection: 'close' });
  await ask('A');
  const [a1, b, a2, a3] = origins().map((each) => each![0]!);
  assert.deepEqual(
    [a1, b, a2, a3].map((origin) => [origin!.trajectoryFrom, origin!.turn]),
    [
      ['guess', 1],
      ['guess', 1],
      ['guess', 2],
      ['guess', 1],
    ],
  );
  assert.equal(a1!.trajectory, a2!.trajectory);
  assert.equal(new Set([a1!.trajectory, b!.trajectory, a3!.trajectory]).size, 3);
});
