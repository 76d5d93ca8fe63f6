import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, postTo } from './build.ts';
import { CONTENTS, type Pair, SCORES, testPairs } from './dialect-pairs.ts';

/** Dialects that share POST /search and are recognised by a key of the body, or by name. */
const PAIRS: readonly Pair[] = [
  {
    what: 'UltraRAG: lists of texts, five passages by default',
    dialect: 'ultrarag',
    body: { query_list: ['', ''], query_instruction: '', collection_name: '' },
    reply: { ret_psg: [CONTENTS, CONTENTS] },
    k: 5,
  },
  {
    what: 'UltraRAG: no queries; top_k 0 and null fields',
    dialect: 'ultrarag',
    body: { query_list: [], top_k: 0, query_instruction: null, collection_name: null },
    reply: { ret_psg: [] },
  },
  {
    what: 'massive-serve: a string gets an outer list of length 1, and nprobe is repeated',
    dialect: 'massive-serve',
    body: { query: '', n_docs: 2, nprobe: 64, domains: 'wiki' },
    reply: {
      message: 'Search completed.',
      query: '',
      n_docs: 2,
      nprobe: 64,
      results: {
        scores: [[SCORES[0], SCORES[1]]],
        passages: [[CONTENTS[0], CONTENTS[1]]],
        IDs: [
          [
            [0, 0],
            [0, 1],
          ],
        ],
      },
    },
    k: 2,
  },
  {
    what: 'massive-serve: a list of queries, recognised by nprobe; one passage by default',
    dialect: 'massive-serve',
    body: { query: ['', ''], nprobe: null },
    reply: {
      message: 'Search completed.',
      query: ['', ''],
      n_docs: 1,
      nprobe: null,
      results: {
        scores: [[SCORES[0]], [SCORES[0]]],
        passages: [[CONTENTS[0]], [CONTENTS[0]]],
        IDs: [[[0, 0]], [[0, 0]]],
      },
    },
    k: 1,
  },
  {
    what: 'DS Serve: passages are objects, a batch is called queries, and ten passages are the default',
    dialect: 'ds-serve',
    body: { queries: [''], backend: 'diskann', exact_search: false },
    reply: {
      message: 'Search completed.',
      query: [''],
      n_docs: 10,
      nprobe: null,
      results: {
        scores: [SCORES],
        passages: [CONTENTS.map((text, i) => ({ passage_id: i, text, source: 'fake-sample' }))],
      },
      timings_ms: { queue: 2, embed: 1.25, search: 0.5, fetch: 0.25, rerank: 0 },
    },
    k: 10,
  },
  {
    what: 'DS Serve: one query without other fields',
    dialect: 'ds-serve',
    body: { query: 'a' },
    k: 10,
  },
  {
    what: 'Serper: titles, links and snippets; a passage without a URL has a link of its own',
    dialect: 'serper',
    body: { q: '', num: '3', gl: 'us' },
    reply: {
      searchParameters: { q: '', type: 'search', num: 3, page: 1 },
      organic: [
        { title: 'Paul Walker', link: 'trawl://fake-sample/0', snippet: 'An American actor.', position: 1 },
        {
          title: 'Brooklyn Bridge',
          link: 'https://example.org/wiki/Brooklyn_Bridge',
          snippet: 'A bridge.',
          position: 2,
        },
        {
          title: '9007199254740993',
          link: 'trawl://fake-sample/9007199254740993',
          snippet: '12 bridges   Bridges with\ttabs.',
          position: 3,
        },
      ],
    },
    k: 3,
  },
  {
    what: 'Serper: a list of searches gets a list of replies, each with its own number and page',
    dialect: 'serper',
    body: [
      { q: '', num: 1 },
      { q: '', num: 1, page: 2 },
    ],
    reply: [
      {
        searchParameters: { q: '', type: 'search', num: 1, page: 1 },
        organic: [{ title: 'Paul Walker', link: 'trawl://fake-sample/0', snippet: 'An American actor.', position: 1 }],
      },
      {
        searchParameters: { q: '', type: 'search', num: 1, page: 2 },
        organic: [
          {
            title: 'Brooklyn Bridge',
            link: 'https://example.org/wiki/Brooklyn_Bridge',
            snippet: 'A bridge.',
            position: 2,
          },
        ],
      },
    ],
    k: 2,
  },
  {
    what: 'Serper: the second page continues the first',
    dialect: 'serper',
    body: { q: '', num: 2, page: 2 },
    reply: {
      searchParameters: { q: '', type: 'search', num: 2, page: 2 },
      organic: [
        {
          title: '9007199254740993',
          link: 'trawl://fake-sample/9007199254740993',
          snippet: '12 bridges   Bridges with\ttabs.',
          position: 3,
        },
      ],
    },
    k: 4,
  },
];

testPairs(PAIRS);

test('each body of POST /search belongs to the dialect whose key it has, and a query alone to ReSearch', async (t) => {
  const app = build(t);
  const shapes: readonly [body: object, shape: (json: unknown) => boolean][] = [
    [{ query: 'a' }, Array.isArray],
    [{ query: 'a', top_n: 2 }, Array.isArray],
    [{ query: 'a', return_score: false, n_docs: 1 }, Array.isArray],
    [{ query: 'a', n_docs: 1 }, (json) => 'IDs' in (json as { results: object }).results],
    [{ query: ['a'], nprobe: 8 }, (json) => 'IDs' in (json as { results: object }).results],
    [{ query_list: ['a'], top_k: 1 }, (json) => 'ret_psg' in (json as object)],
    [{ q: 'a' }, (json) => 'organic' in (json as object)],
    [{ query: 'a', k: 1 }, (json) => 'took_ms' in (json as object)],
    [{ query: 'a', topn: 1 }, (json) => 'summary' in (json as { results: object[] }).results[0]!],
  ];
  for (const [body, shape] of shapes) {
    const { status, json, text } = await postTo(app, '/search', body);
    assert.equal(status, 200, text);
    assert.ok(shape(json), `${JSON.stringify(body)}: ${text}`);
  }
});

test('a preferred dialect of POST /search answers a query alone, and leaves the others their requests', async (t) => {
  const alone = DIALECTS.filter(
    ({ method, path, name }) => method === 'POST' && path === '/search' && name !== 'research',
  );
  for (const { name } of alone) {
    const app = build(t, new FakeRetriever(), { dialects: [name] });
    const { json } = await postTo(app, '/search', { query: 'a', q: undefined });
    assert.ok(!Array.isArray(json), name);
    assert.ok(Array.isArray((await postTo(app, '/search', { query: 'a', top_n: 1 })).json), name);
    assert.ok('ret_psg' in ((await postTo(app, '/search', { query_list: ['a'] })).json as object), name);
  }
  const research = build(t, new FakeRetriever(), { dialects: ['research'] });
  assert.ok(Array.isArray((await postTo(research, '/search', { query: 'a' })).json));
  assert.ok('organic' in ((await postTo(research, '/search', { q: 'a' })).json as object));
  assert.equal((await postTo(research, '/search', [])).status, 422);
});

test('the dialects of POST /search report wrong values', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 100, maxQueries: 3 });
  const named = build(t, new FakeRetriever(), { dialects: ['ds-serve'] });
  const cases: readonly [typeof app, body: unknown, status: number, code: string, loc?: unknown[]][] = [
    [app, { query_list: 'a' }, 422, 'INVALID_REQUEST', ['body', 'query_list']],
    [app, { query_list: ['a', 'b', 'c', 'd'] }, 413, 'TOO_MANY_QUERIES'],
    [app, { query_list: ['a'], top_k: 101 }, 422, 'K_TOO_LARGE', ['body', 'top_k']],
    [app, { query_list: ['a'], collection_name: 'none' }, 404, 'NOT_FOUND'],
    [app, { n_docs: 2 }, 422, 'INVALID_REQUEST', ['body', 'query']],
    [app, { query: 7, n_docs: 2 }, 422, 'INVALID_REQUEST', ['body', 'query']],
    [app, { query: ['a', null], n_docs: 2 }, 422, 'INVALID_REQUEST', ['body', 'query', 1]],
    [app, { query: 'a', n_docs: 101 }, 422, 'K_TOO_LARGE', ['body', 'n_docs']],
    [app, { q: 7 }, 422, 'INVALID_REQUEST', ['body', 'q']],
    [app, { q: 'a', num: 0 }, 422, 'INVALID_REQUEST', ['body', 'num']],
    [app, { q: 'a', num: 60, page: 2 }, 422, 'K_TOO_LARGE', ['body', 'page']],
    [app, [{ q: 'a' }, { q: 7 }], 422, 'INVALID_REQUEST', ['body', 1, 'q']],
    [app, [{ q: 'a' }, null], 422, 'INVALID_REQUEST', ['body', 1]],
    [app, Array(4).fill({ q: 'a' }), 413, 'TOO_MANY_QUERIES'],
    [app, [{ q: 'a' }, { q: 'b', num: 101 }], 422, 'K_TOO_LARGE', ['body', 'num']],
    [app, [{ query: 'a' }], 422, 'INVALID_REQUEST', ['body']],
    [app, [], 422, 'INVALID_REQUEST', ['body']],
    [named, { n_docs: 2 }, 422, 'INVALID_REQUEST', ['body', 'query']],
    [named, { query: 'a', n_docs: 2, diverse_search: true }, 501, 'NOT_SUPPORTED'],
  ];
  for (const [server, body, status, code, loc] of cases) {
    const answer = await postTo(server, '/search', body);
    const name = JSON.stringify(body);
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], name);
    if (loc !== undefined) {
      assert.deepEqual((errorOf(answer.json).detail as { loc: unknown[] }[])[0]?.loc, loc, name);
    }
  }
});

test('UltraRAG’s query_instruction is put before every query, and collection_name chooses the index', async (t) => {
  const retriever = new FakeRetriever();
  const app = build(t, retriever);
  await postTo(app, '/search', { query_list: ['a', 'b'], query_instruction: 'Find: ', collection_name: 'fake-sample' });
  assert.deepEqual(retriever.calls[0]?.queries, ['Find: a', 'Find: b']);
});

test('a Serper hit has the date of its row, and its snippet is the part with the words of the query', async (t) => {
  const long = `${'Filler words. '.repeat(200)}The glacier was surveyed in 1911. ${'More filler. '.repeat(200)}`;
  const documents = [JSON.stringify({ id: 'g', title: 'Glacier', text: long, date: '2024-03-01' })];
  const app = build(t, new FakeRetriever({ documents }));
  const { json } = await postTo(app, '/search', { q: 'glacier surveyed 1911' });
  const [hit] = (json as { organic: { snippet: string; date: string }[] }).organic;
  assert.equal(hit?.date, '2024-03-01');
  assert.match(hit!.snippet, /glacier was surveyed in 1911/);
  assert.ok(hit!.snippet.length <= 1_000);
});
