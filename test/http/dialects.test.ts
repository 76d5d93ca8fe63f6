import assert from 'node:assert/strict';
import { test } from 'node:test';
import Value from 'typebox/value';
import { DIALECTS, NAMEABLE_DIALECTS } from '../../src/http/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, postTo } from './build.ts';

/** Rows in the order the fake retriever ranks them for the query "". */
const ROWS = [
  '{"id":"0","contents":"\\"Paul Walker\\"\\nAn American actor."}',
  '{"id": 1, "title": "Brooklyn Bridge", "text": "A bridge.", "url": "https://example.org/wiki/Brooklyn_Bridge"}',
  '{"id":9007199254740993,"contents":"12 bridges   Bridges with\\ttabs."}',
];
const SCORES = [0.9, 0.8, 0.7].map(Math.fround);
const CONTENTS = [
  '"Paul Walker"\nAn American actor.',
  '"Brooklyn Bridge"\nA bridge.',
  '12 bridges   Bridges with\ttabs.',
];
const WALKER = { id: '0', contents: CONTENTS[0] };
const BRIDGE = {
  id: 1,
  title: 'Brooklyn Bridge',
  text: 'A bridge.',
  url: 'https://example.org/wiki/Brooklyn_Bridge',
  contents: CONTENTS[1],
};
const scored = (document: object, rank: number) => ({ document, score: SCORES[rank] });

interface Case {
  readonly what: string;
  readonly path: string;
  /** Names given with --dialect. */
  readonly named?: readonly string[];
  /** Whose the request is. */
  readonly dialect: string;
  readonly body: unknown;
  readonly reply: unknown;
  /** Passages asked of the retriever; absent, it is not asked. */
  readonly k?: number;
}

/** Every dialect's shapes and quirks; the queries are "" so that the ranking is that of ROWS. */
const CASES: readonly Case[] = [
  {
    what: 'A: scores wrap the document, an id keeps its type, other columns pass',
    path: '/retrieve',
    dialect: 'search-r1',
    body: { queries: [''], topk: 2, return_scores: true },
    reply: { result: [[scored(WALKER, 0), scored(BRIDGE, 1)]] },
    k: 2,
  },
  {
    what: 'A: without scores documents are bare and nested per query, for exactly two queries too',
    path: '/retrieve',
    dialect: 'search-r1',
    body: { queries: ['', ''], topk: 1 },
    reply: { result: [[WALKER], [WALKER]] },
    k: 1,
  },
  {
    what: 'A: no queries',
    path: '/retrieve',
    dialect: 'search-r1',
    body: { queries: [] },
    reply: { result: [] },
    k: 3,
  },
  {
    what: 'A: a topk beyond the corpus repeats nothing',
    path: '/retrieve',
    dialect: 'search-r1',
    body: { queries: [''], topk: 50 },
    reply: { result: [[WALKER, BRIDGE, '9007199254740993']] },
    k: 50,
  },
  {
    what: 'StepSearch: scores always, five passages where none are asked for',
    path: '/retrieve',
    named: ['stepsearch'],
    dialect: 'stepsearch',
    body: { queries: [''], return_scores: false, topk_retrieval: 10 },
    reply: { result: [[scored(WALKER, 0), scored(BRIDGE, 1), '9007199254740993']] },
    k: 5,
  },
  {
    what: 'StepSearch: topk null is the server’s own',
    path: '/retrieve',
    named: ['stepsearch'],
    dialect: 'stepsearch',
    body: { queries: [], topk: null },
    reply: { result: [] },
    k: 3,
  },
  {
    what: 'B: a query with topk; the outer list has length 1',
    path: '/retrieve',
    dialect: 'skyrl',
    body: { query: '', topk: 1, return_scores: true },
    reply: { result: [[scored(WALKER, 0)]] },
    k: 1,
  },
  {
    what: 'B: a query alone, without scores',
    path: '/retrieve',
    dialect: 'skyrl',
    body: { query: '' },
    reply: { result: [[WALKER, BRIDGE, '9007199254740993']] },
    k: 3,
  },
  {
    what: 'C: a query with top_k; ids are ranks and content is the row',
    path: '/retrieve',
    dialect: 'rllm',
    body: { query: '', top_k: 2 },
    reply: {
      query: '',
      method: 'dense_exact',
      results: [
        { id: 'doc_1', content: WALKER, score: SCORES[0] },
        { id: 'doc_2', content: BRIDGE, score: SCORES[1] },
      ],
      num_results: 2,
    },
    k: 2,
  },
  {
    what: 'C: k counts before top_k',
    path: '/retrieve',
    dialect: 'rllm',
    body: { query: '', top_k: 50, k: 1 },
    reply: {
      query: '',
      method: 'dense_exact',
      results: [{ id: 'doc_1', content: WALKER, score: SCORES[0] }],
      num_results: 1,
    },
    k: 1,
  },
  {
    what: 'C: a query alone, where rllm is named, gets its ten',
    path: '/retrieve',
    named: ['rllm'],
    dialect: 'rllm',
    body: { query: '', k: null },
    reply: {
      query: '',
      method: 'dense_exact',
      results: [
        { id: 'doc_1', content: WALKER, score: SCORES[0] },
        { id: 'doc_2', content: BRIDGE, score: SCORES[1] },
        { id: 'doc_3', content: '9007199254740993', score: SCORES[2] },
      ],
      num_results: 3,
    },
    k: 10,
  },
  {
    what: 'C′: a single query is flat, always with scores, the first of topk, top_k and k that is not 0',
    path: '/retrieve',
    named: ['rllm-legacy'],
    dialect: 'rllm-legacy',
    body: { query: '', queries: ['x'], topk: 0, top_k: 1, k: 5, return_scores: false },
    reply: { query: '', method: 'dense_exact', results: [scored(WALKER, 0)], num_results: 1 },
    k: 1,
  },
  {
    what: 'C′: a batch',
    path: '/retrieve',
    named: ['rllm-legacy'],
    dialect: 'rllm-legacy',
    body: { queries: ['', ''], k: 1 },
    reply: { method: 'dense_exact', batch_size: 2, result: [[scored(WALKER, 0)], [scored(WALKER, 0)]] },
    k: 1,
  },
  {
    what: 'D: a bare list with text, where zerosearch is named',
    path: '/retrieve',
    named: ['zerosearch'],
    dialect: 'zerosearch',
    body: { query: '', top_k: 2 },
    reply: [
      { id: '0', title: 'Paul Walker', text: CONTENTS[0], score: SCORES[0] },
      { id: 1, title: 'Brooklyn Bridge', text: CONTENTS[1], score: SCORES[1] },
    ],
    k: 2,
  },
  {
    what: 'D: the others go on beside it',
    path: '/retrieve',
    named: ['zerosearch'],
    dialect: 'skyrl',
    body: { query: '', topk: 1 },
    reply: { result: [[WALKER]] },
    k: 1,
  },
  {
    what: 'E: lines of a TSV corpus, the id before the tab, and the queries again',
    path: '/queries',
    dialect: 'r1-searcher',
    body: { queries: [''] },
    reply: {
      answers: [
        [
          '0\tPaul Walker   An American actor.',
          '1\tBrooklyn Bridge   A bridge.',
          '9007199254740993\t12 bridges   Bridges with\ttabs.',
        ],
      ],
      queries: [''],
    },
    k: 3,
  },
  {
    what: 'E: k 0',
    path: '/queries',
    dialect: 'r1-searcher',
    body: { queries: ['a'], k: 0 },
    reply: { answers: [[]], queries: ['a'] },
  },
  {
    what: 'E: no queries',
    path: '/queries',
    dialect: 'r1-searcher',
    body: { queries: [], k: 5 },
    reply: { answers: [], queries: [] },
    k: 5,
  },
  {
    what: 'F: id and contents alone, ids as strings, ten passages',
    path: '/search',
    dialect: 'research',
    body: { query: '\u00a0x', top_n: 10 },
    reply: 'any',
    k: 10,
  },
  {
    what: 'F: scores make it an array of two',
    path: '/batch_search',
    dialect: 'research-batch',
    body: { query: [''], top_n: 2, return_score: true },
    reply: [
      [
        [
          { id: '0', contents: CONTENTS[0] },
          { id: '1', contents: CONTENTS[1] },
        ],
      ],
      [[SCORES[0], SCORES[1]]],
    ],
    k: 2,
  },
  {
    what: 'F: a blank query in a batch is a query',
    path: '/batch_search',
    dialect: 'research-batch',
    body: { query: [''], top_n: 3 },
    reply: [
      [
        { id: '0', contents: CONTENTS[0] },
        { id: '1', contents: CONTENTS[1] },
        { id: '9007199254740993', contents: CONTENTS[2] },
      ],
    ],
    k: 3,
  },
  { what: 'F: no queries', path: '/batch_search', dialect: 'research-batch', body: { query: [] }, reply: [], k: 10 },
  {
    what: 'F: no queries, with scores',
    path: '/batch_search',
    dialect: 'research-batch',
    body: { query: [], return_score: true },
    reply: [[], []],
    k: 10,
  },
  {
    what: 'F: top_n 0 is not defaulted',
    path: '/search',
    dialect: 'research',
    body: { query: 'a', top_n: 0 },
    reply: [],
  },
  {
    what: 'F: top_n 0 with scores',
    path: '/batch_search',
    dialect: 'research-batch',
    body: { query: ['a', 'b'], top_n: 0, return_score: true },
    reply: [
      [[], []],
      [[], []],
    ],
  },
  {
    what: 'H: pages by URL, by title, by what a wiki’s URL names; null where there is none',
    path: '/access',
    dialect: 'asearcher-access',
    body: {
      urls: [
        'https://example.org/wiki/Brooklyn_Bridge',
        'Brooklyn Bridge',
        'https://en.wikipedia.org/wiki/Paul_Walker#Life',
        'http://localhost/index.php/Paul%20Walker',
        'http://localhost/w/index.php?oldid=1&title=Paul_Walker',
        'https://example.org/other',
        'nothing',
      ],
    },
    reply: { result: [BRIDGE, BRIDGE, WALKER, WALKER, WALKER, null, null] },
  },
  { what: 'H: no URLs', path: '/access', dialect: 'asearcher-access', body: { urls: [] }, reply: { result: [] } },
  {
    what: 'J: texts, and timings in seconds',
    path: '/embed_and_retrieve',
    dialect: 'searchagent-x',
    body: { prompts: ['', ''], top_k: 1, anns_search_range: 100, request_id: 7 },
    reply: {
      neighbor_texts: [[CONTENTS[0]], [CONTENTS[0]]],
      active_threads: 0,
      queued_tasks: 0,
      is_stop_by_stall: false,
      t_embed: 0.00125,
      t_ann: 0.00075,
      t_thread: 0.002,
    },
    k: 1,
  },
];

/** The row with the id beyond 2^53, which JSON.parse rounds: compared by its text. */
function withoutBigRow(json: unknown, text: string): unknown {
  if (!text.includes('9007199254740993')) return json;
  return JSON.parse(
    JSON.stringify(json, (_key, value) => {
      const row = value as { id?: unknown; document?: { id?: unknown } } | null;
      if (typeof row !== 'object' || row === null) return value;
      if (row.id === 9007199254740992) return '9007199254740993';
      return value;
    }),
  );
}

/** Where a scored hit stands for the row with the big id. */
function expected(reply: unknown): unknown {
  return JSON.parse(JSON.stringify(reply));
}

for (const { what, path, named = [], dialect, body, reply, k } of CASES) {
  test(what, async (t) => {
    const retriever = new FakeRetriever({ documents: ROWS });
    const app = build(t, retriever, { dialects: named });
    const { status, json, text } = await postTo(app, path, body);
    assert.equal(status, 200, text);
    const { reply: schema } = DIALECTS.find(({ name }) => name === dialect)!;
    assert.ok(Value.Check(schema, json), `the reply is not as its schema says: ${text}`);
    if (reply !== 'any') {
      const found = withoutBigRow(json, text);
      const scoredBig = JSON.stringify(found).replaceAll(
        /\{"document":"9007199254740993","score":[\d.]+\}/g,
        '"9007199254740993"',
      );
      assert.deepEqual(JSON.parse(scoredBig), expected(reply));
    }
    assert.equal(retriever.calls.at(-1)?.k, k);
  });
}

test('every example is a request of its dialect, and is answered as the schema says', async (t) => {
  for (const { name, path, example, onlyIfNamed, request, reply } of DIALECTS) {
    if (Object.keys(example).length === 0) continue;
    const app = build(t, new FakeRetriever(), { dialects: onlyIfNamed ? [name] : [] });
    const body = name === 'openai-embeddings' ? { ...example, model: 'fake-encoder' } : example;
    const answer = await postTo(app, path, body);
    assert.equal(answer.status, 200, `${name}: ${answer.text}`);
    assert.ok(Value.Check(reply, answer.json), name);
    const complete = Value.Default(request, structuredClone(body));
    assert.ok(Value.Check(request, complete), name);
  }
});

test('a request for what is not there yet is a 501 that says so', async (t) => {
  const app = build(t);
  for (const [path, body] of [
    ['/retrieve', { queries: ['a'], topk_retrieval: 10, topk_rerank: 3 }],
    ['/retrieve', { queries: ['a'], topk_rerank: null }],
    ['/retrieve/rerank', { queries: ['a'] }],
    ['/rerank', { queries: ['a'], documents: [[]] }],
    ['/wiki_en/_search', { query: { multi_match: { query: 'a', fields: ['title', 'text'] } }, size: 1 }],
  ] as const) {
    const { status, json } = await postTo(app, path, body);
    assert.deepEqual([status, errorOf(json).code], [501, 'NOT_SUPPORTED'], path);
    assert.match(errorOf(json).message, /rerank|BM25/);
  }
});

test('wrong values are told by each dialect in the words and with the status that its clients know', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 100, maxQueries: 3, dialects: ['rllm-legacy'] });
  const cases: readonly [path: string, body: unknown, status: number, code: string, loc?: unknown[]][] = [
    ['/retrieve', {}, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/queries', {}, 422, 'INVALID_REQUEST', ['body', 'queries']],
    ['/queries', '{', 400, 'INVALID_JSON'],
    ['/queries', { queries: 'a' }, 422, 'INVALID_REQUEST', ['body', 'queries']],
    ['/queries', { queries: ['a'], k: 101 }, 422, 'K_TOO_LARGE', ['body', 'k']],
    ['/queries', { queries: ['a', 'b', 'c', 'd'] }, 413, 'TOO_MANY_QUERIES'],
    ['/search', {}, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/search', { query: ['a'] }, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/search', { query: ' \n\t' }, 400, 'EMPTY_QUERY'],
    ['/search', { query: 'a', top_n: -1 }, 422, 'INVALID_REQUEST', ['body', 'top_n']],
    ['/search', { query: 'a', top_n: null }, 422, 'INVALID_REQUEST', ['body', 'top_n']],
    ['/search', '{', 422, 'INVALID_JSON'],
    ['/batch_search', { query: 'a' }, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/batch_search', { query: ['a'], top_n: 101 }, 422, 'K_TOO_LARGE', ['body', 'top_n']],
    ['/access', { urls: 'a' }, 422, 'INVALID_REQUEST', ['body', 'urls']],
    ['/access', { urls: [null] }, 422, 'INVALID_REQUEST', ['body', 'urls', 0]],
    ['/access', { urls: ['a', 'b', 'c', 'd'] }, 413, 'TOO_MANY_QUERIES'],
    ['/embed_and_retrieve', { prompts: ['a'] }, 422, 'INVALID_REQUEST', ['body', 'top_k']],
    ['/embed_and_retrieve', { prompts: ['a'], top_k: 'x' }, 422, 'INVALID_REQUEST', ['body', 'top_k']],
  ];
  for (const [path, body, status, code, loc] of cases) {
    const answer = await postTo(app, path, body);
    const name = `${path} ${JSON.stringify(body)}`;
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], name);
    if (loc !== undefined) {
      assert.deepEqual((errorOf(answer.json).detail as { loc: unknown[] }[])[0]?.loc, loc, name);
    }
  }
  const blank = await postTo(app, '/search', { query: ' ' });
  assert.equal(errorOf(blank.json).detail, 'Query content cannot be empty');
});

test('on every path: another method is a 405, another content type a 415, a trailing slash a 307', async (t) => {
  const app = build(t);
  for (const { path } of DIALECTS) {
    const url = path.replace(':index', 'wiki_en');
    const got = await app.inject({ method: 'GET', url });
    assert.deepEqual([got.statusCode, got.headers.allow], [405, 'POST, OPTIONS'], path);
    assert.equal((await postTo(app, url, '{}', { 'content-type': 'text/plain' })).status, 415, path);
    assert.equal((await postTo(app, `${url}/`, '{}')).status, 307, path);
  }
});

test('a dialect that is named twice, unknown or alone on its path is refused with the names there are', (t) => {
  for (const dialects of [['zero'], ['research'], ['rllm', 'rllm'], ['search-r1-rerank'], ['']]) {
    assert.throws(() => build(t, new FakeRetriever(), { dialects }), {
      code: 'CONFIG_INVALID',
      message: /rllm, skyrl, stepsearch, rllm-legacy, zerosearch, search-r1/,
    });
  }
  assert.deepEqual([...NAMEABLE_DIALECTS].sort(), [
    'rllm',
    'rllm-legacy',
    'search-r1',
    'skyrl',
    'stepsearch',
    'zerosearch',
  ]);
});

test('where two named dialects claim a request, the one named first gets it; naming all leaves none unanswered', async (t) => {
  const single = { query: 'a', top_k: 1 };
  const first = build(t, new FakeRetriever(), { dialects: ['zerosearch', 'rllm'] });
  assert.ok(Array.isArray((await postTo(first, '/retrieve', single)).json));
  const second = build(t, new FakeRetriever(), { dialects: ['rllm', 'zerosearch'] });
  assert.ok('results' in ((await postTo(second, '/retrieve', single)).json as object));
  const all = build(t, new FakeRetriever(), { dialects: NAMEABLE_DIALECTS });
  for (const body of [single, { query: 'a' }, { queries: ['a'] }, { query: 'a', topk: 1 }]) {
    assert.equal((await postTo(all, '/retrieve', body)).status, 200, JSON.stringify(body));
  }
  for (const body of [{}, [], 'null', { topk: 3 }]) {
    assert.equal((await postTo(all, '/retrieve', body)).status, 422, JSON.stringify(body));
  }
});

test('several passages of one URL make one page under their title', async (t) => {
  const url = 'https://example.org/p';
  const rows = ['One.', 'Two.'].map((words, i) => JSON.stringify({ id: i, url, contents: `"Page"\n${words}` }));
  const apart = [JSON.stringify({ id: 'x', url: 'u', contents: 'No title.' }), JSON.stringify({ url: 'u', text: 'B' })];
  const app = build(t, new FakeRetriever({ documents: [...rows, ...apart] }));
  const { json } = await postTo(app, '/access', { urls: [url, 'u', 'Page'] });
  const page = { url, title: 'Page', contents: '"Page"\nOne.\nTwo.', passages: [0, 1] };
  assert.deepEqual(json, { result: [page, { url: 'u', contents: 'No title.\nB', passages: ['x', null] }, page] });
});

test('/health is one object for all who ask, and a 503 until there is an index', async (t) => {
  const { RetrieverHolder } = await import('../../src/http/retriever-holder.ts');
  const holder = new RetrieverHolder();
  const app = build(t, holder);
  const starting = await app.inject('/health');
  assert.equal(starting.statusCode, 503);
  assert.deepEqual(starting.json(), {
    status: 'starting',
    retrievers: { total: 1, available: 0 },
    index_loaded: false,
  });
  holder.ready(new FakeRetriever());
  const ready = await app.inject('/health');
  assert.equal(ready.statusCode, 200);
  assert.deepEqual(ready.json(), {
    status: 'healthy',
    retrievers: { total: 1, available: 1 },
    index_loaded: true,
    corpus_size: 5,
    retrieval_method: 'fake-encoder',
  });
});
