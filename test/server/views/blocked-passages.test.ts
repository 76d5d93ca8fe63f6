import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { parseFilterExpression } from '../../../src/engine/filter/filter-expression.ts';
import type { Dialect } from '../../../src/server/dialects/dialect.ts';
import { DIALECTS, NAMEABLE_DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { MCP_TOOL_SETS, type McpToolSet } from '../../../src/server/mcp/mcp-config.ts';
import { TOOL_SETS } from '../../../src/server/mcp/server.ts';
import { build } from '../build.ts';
import {
  BINDINGS,
  type Binding,
  blocked,
  bothIndexes,
  DISTRACTORS,
  INDEXES,
  inject,
  PASSAGES,
  Q,
  SECRET,
  skip,
} from './viewed-indexes.ts';

/** The same, and the filter of an address, which has no name. */
const LIMITS: typeof BINDINGS = {
  ...BINDINGS,
  'filter with distractors': {
    config: { filter: parseFilterExpression('open'), ...DISTRACTORS },
    prefix: '',
    headers: {},
  },
  filter: { config: { filter: parseFilterExpression('open') }, prefix: '', headers: {} },
};

const UNBOUND: Binding = { config: {}, prefix: '', headers: {} };

/** A query that ranks blocked passages first, for clients that ask for few passages, or get the best of each document. */
const BLOCKED_FIRST = `what is ${SECRET} here`;

/** Names of a blocked passage: in a view none of them leads to it. */
const ID = 'wiki-3';

const DOC = 'wiki-doc-1';

const URL_OF_DOC = 'https://example.org/wiki/1';

const TEXTS = { query: Q, texts: ['one', 'two'] };

const DOCUMENTS = { model: 'any', query: Q, documents: ['one', 'two'], top_n: 1 };

const ACTION = { trajectory_ids: ['r'], actions: [`<search>${Q}</search>`], extra_fields: [{ question: Q }] };

const MODES = ['dense', 'bm25', 'hybrid'] as const;

/**
 * Requests that ask for every passage in every way, beside the request of the dialect's client for a hundred passages. A new dialect
 * without a client needs an entry; if its replies have no passages of the index, also its name in WITHOUT_PASSAGES.
 */
const ATTEMPTS: Readonly<Record<string, readonly object[]>> = {
  'browsecomp-plus': [{ query: Q, topk: 100, k: 100 }],
  'search-r1': [{ queries: [Q, Q], topk: 100, return_scores: true }],
  'foldagent-open': [
    { docid: ID, url: null },
    { docid: DOC, url: null },
    { docid: 'row 3', url: null },
    { docid: null, url: URL_OF_DOC },
    { docid: null, url: `trawl://wiki/${ID}` },
    { docid: 'Page 1', url: null },
  ],
  'openresearcher-content': [{ url: URL_OF_DOC }, { url: 'Page 1' }, { url: `trawl://wiki/${ID}` }],
  'asearcher-access': [{ urls: [URL_OF_DOC, 'Page 1', 'https://wiki/Page_1'] }],
  'serper-scholar': [{ q: BLOCKED_FIRST, num: 100 }, [{ q: Q, num: 100 }]],
  ...Object.fromEntries(
    ['serper-scrape', 'jina-reader'].map((name) => [
      name,
      [URL_OF_DOC, 'Page 1', `trawl://wiki/${ID}`].map((url) => ({ url })),
    ]),
  ),
  'openai-embeddings': [{ input: [Q], model: 'token-average-256' }],
  'tei-embed': [{ inputs: [Q] }],
  'tei-embed-root': [{ inputs: [Q] }],
  'tei-info': [{}],
  'searchagent-x-check-stall': [{}],
  'searchagent-x-reset': [{}],
  native: [
    ...MODES.flatMap((mode) => [
      { queries: [Q, 'number 3'], k: 100, mode, documents: true },
      { queries: [Q, 'number 3'], k: 100, mode, fuse: 'rrf', documents: true },
      { queries: [Q], k: 100, mode, index: ['news', 'wiki'], documents: true },
      { queries: [Q], k: 100, mode, index: 'all', allowPartial: true },
      { queries: [Q], k: 100, mode, rerank: { depth: 100 } },
      { queries: [Q], k: 100, mode, deduplicate: 'document', exclude: ['wiki-2'] },
      { queries: [Q], k: 100, mode, filter: "source in ('news', 'wiki') or not source exists" },
    ]),
    { queries: [Q], k: 1, mode: 'bm25', exclude: Array.from({ length: 12 }, (_, i) => `wiki-${2 * i}`) },
    { queries: [Q], k: 100, mode: 'bm25', explain: true },
  ],
  'native-passages': [
    { ids: [ID, DOC, 'wiki-2'], rows: [3, 2], wholeDocuments: true },
    { ids: [ID], rows: [3, 27, 30], index: 'all', wholeDocuments: true },
    { ids: [DOC, 'wiki-2'], wholeDocuments: true, cut: { tokens: 1_000 } },
  ],
  'native-score': [
    { queries: [{ query: Q, ids: [ID, 'wiki-2'], rows: [3, 2], answers: [SECRET] }] },
    { queries: [{ query: Q, ids: [ID, 'wiki-2'], answers: [SECRET] }], index: 'all' },
  ],
  'search-r1-reranker': [{ queries: [Q], documents: [[{ contents: 'one' }]] }],
  'tei-rerank': [TEXTS],
  'infinity-rerank': [DOCUMENTS],
  rerank: [DOCUMENTS],
  'sglang-rerank': [DOCUMENTS],
  'rerank-v1': [DOCUMENTS],
  'rerank-v2': [DOCUMENTS],
  'verl-tool': [ACTION],
  'verl-tool-question': [ACTION],
};

function attemptsOf({ name, client }: Dialect): readonly object[] {
  // Elasticsearch's interface has routes and a test of its own.
  if (name === 'elasticsearch') return [];
  const asked = client === undefined ? [] : [client.request([BLOCKED_FIRST], 100)];
  return [...asked, ...(ATTEMPTS[name] ?? [])];
}

/** Dialects whose replies have no passages of the index. */
const WITHOUT_PASSAGES = [
  'openai-embeddings',
  'tei-embed',
  'tei-embed-root',
  'tei-info',
  'searchagent-x-check-stall',
  'searchagent-x-reset',
  'search-r1-reranker',
  'tei-rerank',
  'infinity-rerank',
  'rerank',
  'sglang-rerank',
  'rerank-v1',
  'rerank-v2',
  'elasticsearch',
];

const ELASTICSEARCH: readonly Pick<InjectOptions, 'method' | 'url' | 'payload'>[] = [
  { method: 'GET', url: `/wiki/_doc/${ID}` },
  { method: 'GET', url: `/wiki/_source/${ID}` },
  { method: 'POST', url: '/wiki/_mget', payload: { ids: [ID, 'wiki-2'] } },
  { method: 'POST', url: '/_mget', payload: { docs: [{ _index: 'news', _id: 'news-3' }] } },
  ...[
    { match: { contents: Q } },
    { match_all: {} },
    { ids: { values: [ID, 'wiki-2'] } },
    { term: { _id: ID } },
    { bool: { must: [{ match_all: {} }], must_not: [{ ids: { values: ['wiki-2'] } }] } },
  ].flatMap((query) => [
    { method: 'POST' as const, url: '/wiki/_search', payload: { query, size: 100 } },
    { method: 'POST' as const, url: '/_search', payload: { query, size: 100 } },
  ]),
];

/** The text of a reply, with what it has in base64. */
function decoded(text: string): string {
  const inside = Array.from(text.matchAll(/"([A-Za-z0-9+/=]{60,})"/g), ([, each]) => Buffer.from(each!, 'base64'));
  return [text, ...inside.map(String)].join('\n');
}

test('no request of any dialect gets a blocked passage, by a view or a filter, however the request is bound to it', {
  skip,
}, async (t) => {
  for (const { name, client } of DIALECTS) assert.ok(client !== undefined || name in ATTEMPTS, name);
  const holder = await bothIndexes(t);
  const onPath = ({ method, path }: Dialect): Dialect[] =>
    DIALECTS.filter((other) => other.method === method && other.path === path);
  const apps = new Map<Binding, FastifyInstance[]>();
  /** One app for several dialects: each is the only one of its path that is named. */
  const appOf = (binding: Binding, dialect: Dialect): FastifyInstance => {
    const ofBinding = apps.get(binding) ?? [];
    const turn = onPath(dialect).indexOf(dialect);
    const named = DIALECTS.filter((each) => each.name !== 'elasticsearch' && onPath(each).indexOf(each) === turn);
    const dialects = named.map(({ name }) => name).filter((name) => NAMEABLE_DIALECTS.includes(name));
    ofBinding[turn] ??= build(t, holder, { ...binding.config, dialects, topk: 100, maxK: 100 });
    apps.set(binding, ofBinding);
    return ofBinding[turn];
  };
  for (const dialect of DIALECTS) {
    const replies = async (binding: Binding): Promise<string[]> => {
      const app = appOf(binding, dialect);
      const texts: string[] = [];
      for (const attempt of attemptsOf(dialect)) {
        const fields = Object.fromEntries(Object.entries(attempt).map(([name, value]) => [name, String(value)]));
        const response = await inject(app, binding, {
          method: dialect.method,
          url: dialect.path,
          ...(dialect.method === 'GET' ? { query: fields } : { payload: attempt }),
        });
        const isUnknown = response.statusCode === 404 && binding !== UNBOUND;
        assert.ok(response.statusCode === 200 || isUnknown, `${dialect.name}: ${response.payload}`);
        const hasView = Object.values(BINDINGS).includes(binding);
        assert.equal(response.headers['x-trawl-view'], hasView ? 'train' : undefined, dialect.name);
        // Some replies repeat the query.
        texts.push(decoded(response.payload).replaceAll(BLOCKED_FIRST, ''));
      }
      return texts;
    };
    // The requests are worth sending: without the view they do get blocked passages.
    if (!WITHOUT_PASSAGES.includes(dialect.name)) {
      for (const [i, text] of (await replies(UNBOUND)).entries()) {
        if (!/"answer"/.test(text)) assert.match(text, new RegExp(SECRET), `${dialect.name} ${i}`);
      }
    }
    for (const [name, binding] of Object.entries(LIMITS)) {
      for (const text of await replies(binding))
        assert.doesNotMatch(text, new RegExp(SECRET), `${dialect.name} by ${name}`);
    }
  }
});

test("Elasticsearch's routes neither return nor count blocked passages", { skip }, async (t) => {
  const holder = await bothIndexes(t);
  const config = { dialects: ['elasticsearch'] };
  const open = build(t, holder, config);
  for (const [name, binding] of Object.entries(LIMITS)) {
    const app = build(t, holder, { ...binding.config, ...config });
    for (const request of ELASTICSEARCH) {
      const shown = `${name} ${String(request.url)} ${JSON.stringify(request.payload)}`;
      const whole = await open.inject(request);
      assert.equal(whole.statusCode, 200, `${shown} ${whole.payload}`);
      assert.match(whole.payload, new RegExp(SECRET), shown);
      const { payload, statusCode } = await inject(app, binding, request);
      assert.ok(statusCode === 200 || statusCode === 404, `${shown} ${payload}`);
      assert.doesNotMatch(payload, new RegExp(SECRET), shown);
    }
    for (const [query, count] of [
      [{ match_all: {} }, 12],
      [{ ids: { values: [ID] } }, 0],
      [{ ids: { values: [ID, 'wiki-2'] } }, 1],
      [{ match: { contents: SECRET } }, 0],
    ] as const) {
      const response = await inject(app, binding, { method: 'POST', url: '/wiki/_count', payload: { query } });
      assert.equal(response.json<{ count: number }>().count, count, `${name} ${JSON.stringify(query)}`);
    }
    const lines = ['{"index":"wiki"}', JSON.stringify({ query: { match_all: {} }, size: 100 }), ''].join('\n');
    const many = await inject(app, binding, {
      method: 'POST',
      url: '/_msearch',
      headers: { 'content-type': 'application/x-ndjson' },
      payload: lines,
    });
    assert.equal(many.statusCode, 200, many.payload);
    assert.match(many.payload, /public/);
    assert.doesNotMatch(many.payload, new RegExp(SECRET));
  }
});

/** Calls of every tool of every set. A new tool needs an entry. */
const TOOL_CALLS: Readonly<Record<McpToolSet, Readonly<Record<string, readonly object[]>>>> = {
  trawl: {
    search: [
      { query: Q, k: 100 },
      { query: Q, k: 100, mode: 'bm25', filter: 'source exists' },
    ],
    fetch: [ID, `trawl://wiki/${ID}`, 'row 3', URL_OF_DOC, 'Page 1'].map((id) => ({ id })),
  },
  'browsecomp-plus': { search: [{ query: BLOCKED_FIRST }], get_document: [{ docid: ID }, { docid: DOC }] },
  'dr-tulu': {
    massive_serve_search: [{ query: Q, n_docs: 100 }],
    serper_google_webpage_search: [{ query: Q, num_results: 100 }],
    semantic_scholar_snippet_search: [{ query: Q, limit: 100 }],
    vllm_hosted_reranker: [],
    serper_fetch_webpage_content: [{ webpage_url: URL_OF_DOC }],
    jina_fetch_webpage_content: [{ webpage_url: URL_OF_DOC }],
    crawl4ai_fetch_webpage_content: [{ url: URL_OF_DOC }],
  },
};

test('assistants can neither search nor fetch a blocked passage by id, row, URL or title', { skip }, async (t) => {
  const holder = await bothIndexes(t);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const ask = async (app: FastifyInstance, binding: Binding, params: object): Promise<string> => {
    const payload = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    const { statusCode, payload: text } = await inject(app, binding, { method: 'POST', url: '/mcp', headers, payload });
    assert.equal(statusCode, 200, text);
    return text;
  };
  for (const tools of MCP_TOOL_SETS) {
    assert.deepEqual(
      Object.keys(TOOL_CALLS[tools]),
      TOOL_SETS[tools].tools.map(({ name }) => name),
    );
    const config = { mcp: { hosts: [], tools }, topk: 100 };
    const open = build(t, holder, config);
    const bound = Object.values(LIMITS).map((binding) => ({
      binding,
      app: build(t, holder, { ...binding.config, ...config }),
    }));
    for (const [name, calls] of Object.entries(TOOL_CALLS[tools])) {
      for (const args of calls) {
        const params = { name, arguments: args };
        const shown = JSON.stringify(params);
        assert.match(await ask(open, UNBOUND, params), new RegExp(SECRET), shown);
        for (const { app, binding } of bound) {
          assert.doesNotMatch(await ask(app, binding, params), new RegExp(SECRET), shown);
        }
      }
    }
  }
});

test('GET /v1/passages/{id} does not know a blocked passage, in an index and in a group', { skip }, async (t) => {
  const holder = await bothIndexes(t);
  for (const binding of Object.values(LIMITS)) {
    const app = build(t, holder, binding.config);
    const get = async (url: string): Promise<number> => (await inject(app, binding, { method: 'GET', url })).statusCode;
    assert.equal(await get(`/v1/passages/${ID}`), 404);
    assert.equal(await get(`/v1/passages/${ID}?index=all`), 404);
    assert.equal(await get(`/indexes/wiki/v1/passages/${ID}`), 404);
    assert.equal(await get('/v1/passages/wiki-2'), 200);
    assert.equal(await get('/v1/passages/news-2?index=all'), 200);
  }
});

test('a sample and its map have no blocked passage', { skip }, async (t) => {
  const holder = await bothIndexes(t);
  const ask = async (binding: Binding, url: string): Promise<{ ids: string[]; points: number; text: string }> => {
    const response = await inject(build(t, holder, binding.config), binding, { method: 'GET', url });
    assert.equal(response.statusCode, 200, response.payload);
    const { passages, map } = response.json<{ passages: { id: string }[]; map: { points: unknown[] } }>();
    return { ids: passages.map(({ id }) => id), points: map.points.length, text: response.payload };
  };
  for (const index of INDEXES) {
    const url = `/v1/sample?map=true&index=${index}`;
    const whole = await ask(UNBOUND, url);
    assert.deepEqual([whole.ids.length, whole.points], [PASSAGES, PASSAGES]);
    assert.match(whole.text, new RegExp(SECRET));
    for (const [name, binding] of Object.entries(LIMITS)) {
      // Also after the map of the whole index was made and kept.
      const { ids, points, text } = await ask(binding, url);
      assert.deepEqual(
        ids,
        whole.ids.filter((id) => !blocked(index).includes(id)),
        name,
      );
      assert.equal(points, PASSAGES / 2, name);
      assert.doesNotMatch(text, new RegExp(SECRET), name);
    }
  }
});
