import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { parseFilterExpression } from '../../src/filter/filter-expression.ts';
import { AccessKeys } from '../../src/http/access/access-keys.ts';
import type { Dialect } from '../../src/http/dialects/dialect.ts';
import { DIALECTS, NAMEABLE_DIALECTS } from '../../src/http/dialects/dispatch.ts';
import { IndexSlot } from '../../src/http/indexes/index-slot.ts';
import { RetrieverHolder } from '../../src/http/indexes/retriever-holder.ts';
import { MCP_TOOL_SETS, type McpToolSet } from '../../src/http/mcp/mcp-config.ts';
import { TOOL_SETS } from '../../src/http/mcp/tool-sets.ts';
import type { ServerConfig } from '../../src/http/server-config.ts';
import { loadKernel } from '../../src/native/kernel.ts';
import { Perturbation } from '../../src/perturbation/perturbation.ts';
import { perturbationSettings } from '../../src/perturbation/settings.ts';
import type { RecordedRequest, RecordedSearch } from '../../src/recording/recorded-search.ts';
import { AnswerCache } from '../../src/retrieval/layers/answer-cache.ts';
import { openRetriever } from '../../src/retrieval/opening/open-retriever.ts';

import type { ViewDefinition } from '../../src/views/view-definition.ts';
import { fileFolder, runTrawl } from '../cli/run-trawl.ts';
import { FakeReranker } from '../helpers/fake-reranker.ts';
import { keptEncoders } from '../helpers/kept-encoders.ts';
import { build, errorOf, postTo } from './build.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
const encoderPools = keptEncoders();

/** Passages with odd numbers are blocked in the view. Each document has a passage that is blocked and one that is not. */
const PASSAGES = 24;
const SECRET = 'classified';
const rowsOf = (index: string): readonly object[] =>
  Array.from({ length: PASSAGES }, (_, i) => ({
    id: `${index}-${i}`,
    doc_id: `${index}-doc-${Math.floor(i / 2)}`,
    title: `Page ${Math.floor(i / 2)}`,
    url: `https://example.org/${index}/${Math.floor(i / 2)}`,
    text: `The river and the bridge of ${index}, number ${i}, are ${i % 2 === 0 ? 'public' : SECRET} here.`,
    source: i % 3 === 0 ? 'news' : 'wiki',
    open: i % 2 === 0,
  }));
const INDEXES = ['wiki', 'news'] as const;
const blocked = (index: string): string[] => Array.from({ length: PASSAGES / 2 }, (_, i) => `${index}-${2 * i + 1}`);
const VIEWS: readonly ViewDefinition[] = [
  { name: 'train', blockIds: [join(folder, 'blocked.txt')] },
  { name: 'news-only', filter: { column: 'source', op: '=', value: 'news' } },
];

before(async () => {
  if (!loaded.ok) return;
  writeFileSync(join(folder, 'blocked.txt'), `${INDEXES.flatMap(blocked).join('\n')}\n`);
  for (const name of INDEXES) {
    const corpus = join(folder, `${name}.jsonl`);
    writeFileSync(
      corpus,
      rowsOf(name)
        .map((row) => `${JSON.stringify(row)}\n`)
        .join(''),
    );
    const options = [
      '--model',
      'token-average-256',
      '--bm25',
      '--column',
      'source:string',
      '--column',
      'open:boolean',
      '--quiet',
    ];
    const { code, stderr } = await runTrawl(['index', corpus, '--out', join(folder, name), ...options]);
    assert.equal(code, 0, stderr);
  }
});

/** Both indexes with both views, a cache, a reranker and a group. */
async function bothIndexes(t: TestContext, views: readonly ViewDefinition[] = VIEWS): Promise<RetrieverHolder> {
  const answerCache = new AnswerCache(1e8);
  const reranker = new FakeReranker();
  const holder = new RetrieverHolder(
    INDEXES.map(
      (name) =>
        new IndexSlot(name, { folder: join(folder, name) }, (_, target) =>
          openRetriever(target.folder, { name, views, answerCache, reranker, encoderPools }),
        ),
    ),
    new Map([['all', INDEXES]]),
  );
  t.after(() => holder.close());
  await holder.open();
  return holder;
}

const KEY = 'a-key-of-sixteen-or-more';
const ADMIN = 'an-admin-key-of-sixteen-or-more';

interface Binding {
  readonly config: Partial<ServerConfig>;
  readonly prefix: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Mixes passages into every answer that the search did not find. */
const DISTRACTORS = { perturbation: new Perturbation(perturbationSettings({ distractors: 1 }, { distractors: 12 })) };

/** The ways in which a request is limited to a view. */
const BINDINGS: Readonly<Record<string, Binding>> = {
  'address with distractors': { config: { views: ['train'], ...DISTRACTORS }, prefix: '', headers: {} },
  address: { config: { views: ['train'] }, prefix: '', headers: {} },
  path: { config: {}, prefix: '/views/train', headers: {} },
  key: {
    config: { keys: AccessKeys.parse(`read:${KEY} view=train\nadmin:${ADMIN}`, 'keys') },
    prefix: '',
    headers: { authorization: `Bearer ${KEY}` },
  },
};
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

const Q = 'the river and the bridge';
/** A query that ranks blocked passages first, for dialects that return few passages, or the best of each document. */
const BLOCKED_FIRST = `what is ${SECRET} here`;
/** Names of a blocked passage: in a view none of them leads to it. */
const ID = 'wiki-3';
const DOC = 'wiki-doc-1';
const URL_OF_DOC = 'https://example.org/wiki/1';
const TEXTS = { query: Q, texts: ['one', 'two'] };
const DOCUMENTS = { model: 'any', query: Q, documents: ['one', 'two'], top_n: 1 };

const ACTION = { trajectory_ids: ['r'], actions: [`<search>${Q}</search>`], extra_fields: [{ question: Q }] };

const MODES = ['dense', 'bm25', 'hybrid'] as const;

/** Requests that ask for every passage in every way. A new dialect needs an entry. */
const ATTEMPTS: Readonly<Record<string, readonly object[]>> = {
  'search-r1-rerank': [{ queries: [Q], topk_retrieval: 100, topk_rerank: 100 }],
  'search-r1-rerank-text': [{ queries: [Q], topk_retrieval: 100, topk_rerank: 100 }],
  rllm: [{ query: Q, top_k: 100 }],
  skyrl: [{ query: Q, topk: 100, return_scores: true }],
  stepsearch: [{ queries: [Q], topk: 100 }],
  asearcher: [{ queries: [Q], topk: 100 }],
  'agent-lightning': [{ queries: [Q], topk: 100 }],
  'browsecomp-plus': [{ query: Q, topk: 100, k: 100 }, { query: Q }],
  'rllm-legacy': [{ query: Q, topk: 100 }],
  zerosearch: [{ query: Q, top_k: 100 }],
  'search-r1': [{ queries: [Q, Q], topk: 100, return_scores: true }],
  'r1-searcher': [{ queries: [Q], k: 100 }],
  ultrarag: [{ query_list: [Q], top_k: 100 }],
  serper: [{ q: Q, num: 100 }],
  'massive-serve': [{ query: Q, n_docs: 100 }],
  'ds-serve': [{ query: Q, n_docs: 100 }],
  foldagent: [{ query: Q, k: 100 }],
  openresearcher: [{ query: BLOCKED_FIRST, topn: 100 }],
  research: [{ query: Q, top_n: 100 }],
  'research-batch': [{ query: [Q], top_n: 100 }],
  'deep-research-gym': [{ query: Q, k: 100 }],
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
  'searchagent-x': [{ prompts: [Q], top_k: 100 }],
  'openai-embeddings': [{ input: [Q], model: 'token-average-256' }],
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
  'verl-tool': [ACTION],
  'verl-tool-question': [ACTION],
  'stepsearch-rerank': [{ queries: [BLOCKED_FIRST], topk: 100 }],
  'search-r1-reranker': [{ queries: [Q], documents: [[{ contents: 'one' }]] }],
  'tei-rerank': [TEXTS],
  'infinity-rerank': [DOCUMENTS],
  rerank: [DOCUMENTS],
  'sglang-rerank': [DOCUMENTS],
  'rerank-v1': [DOCUMENTS],
  'rerank-v2': [DOCUMENTS],
  elasticsearch: [],
};

/** Dialects whose replies have no passages of the index. */
const WITHOUT_PASSAGES = [
  'openai-embeddings',
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

function inject(app: FastifyInstance, binding: Binding, options: InjectOptions) {
  const url = `${binding.prefix}${String(options.url)}`;
  return app.inject({ ...options, url, headers: { ...binding.headers, ...options.headers } });
}

/** The text of a reply, with what it has in base64. */
function decoded(text: string): string {
  const inside = Array.from(text.matchAll(/"([A-Za-z0-9+/=]{60,})"/g), ([, each]) => Buffer.from(each!, 'base64'));
  return [text, ...inside.map(String)].join('\n');
}

test('no request of any dialect gets a blocked passage, by a view or a filter, however the request is bound to it', {
  skip,
}, async (t) => {
  assert.deepEqual(Object.keys(ATTEMPTS).sort(), DIALECTS.map(({ name }) => name).sort());
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
      for (const attempt of ATTEMPTS[dialect.name]!) {
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
        texts.push(decoded(response.payload));
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

test('a passage outside of the view has no score, and ranks are those within the view', { skip }, async (t) => {
  const app = build(t, await bothIndexes(t), { views: ['train'] });
  const { json: found } = await postTo(app, '/v1/search', { queries: ['number 3'], k: 100, mode: 'bm25' });
  const { hits } = (found as { results: { hits: { row: number; score: number }[] }[] }).results[0]!;
  assert.equal(hits.length, 12);
  const rows = Array.from({ length: PASSAGES }, (_, row) => row);
  const { json } = await postTo(app, '/v1/score', { queries: [{ query: 'number 3', rows }], modes: ['bm25'] });
  const { view, results } = json as { view: string; results: { passages: ({ row: number; bm25: object } | null)[] }[] };
  assert.equal(view, 'train');
  const expected = rows.map((row) => {
    const at = hits.findIndex((hit) => hit.row === row);
    return at < 0 ? null : { row, id: `wiki-${row}`, bm25: { score: hits[at]!.score, rank: at + 1 } };
  });
  assert.deepEqual(results[0]!.passages, expected);
});

interface Reply {
  readonly view?: string;
  readonly results: readonly { readonly hits: readonly { readonly id: string }[] }[];
}

test('a request in a view and one outside of it share neither answers in flight nor cached ones', {
  skip,
}, async (t) => {
  const holder = await bothIndexes(t);
  const app = build(t, holder, BINDINGS.key!.config);
  const ask = async (key: string, prefix = ''): Promise<Reply> => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const { status, json, text } = await postTo(app, `${prefix}/v1/search`, { queries: [Q], k: 24 }, headers);
    assert.equal(status, 200, text);
    return json as Reply;
  };
  for (let round = 0; round < 2; round++) {
    const [whole, bound, both, byPath] = await Promise.all([
      ask(ADMIN),
      ask(KEY),
      ask(KEY, '/views/news-only'),
      ask(ADMIN, '/views/train'),
    ]);
    assert.deepEqual(
      [whole, bound, both, byPath].map(({ view, results }) => [view, results[0]!.hits.length]),
      [
        [undefined, 24],
        ['train', 12],
        ['train,news-only', 4],
        ['train', 12],
      ],
    );
    assert.deepEqual(byPath.results[0]!.hits, bound.results[0]!.hits);
    assert.ok(both.results[0]!.hits.every(({ id }) => Number(id.split('-')[1]) % 6 === 0));
  }
});

test('a client bound by its key leaves the view neither by its path, nor by an index, nor by another header', {
  skip,
}, async (t) => {
  const holder = await bothIndexes(t);
  const app = build(t, holder, BINDINGS.key!.config);
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${KEY}` };
  for (const url of [
    '/v1/search',
    '/views/news-only/v1/search',
    '/views/train/indexes/news/v1/search',
    '/indexes/news/views/train/v1/search',
    '/v1/search?index=news',
    '/v1/search?view=',
    'http://example.org/v1/search',
  ]) {
    const { status, text } = await postTo(app, url, { queries: [Q], k: 100 }, { ...headers, 'x-trawl-view': 'none' });
    assert.equal(status, 200, `${url} ${text}`);
    assert.doesNotMatch(text, new RegExp(SECRET), url);
    assert.match(text, /"view":"train/, url);
  }
  // The key of the header "authorization" counts, and only it.
  const withBoth = await postTo(app, '/v1/search', { queries: [Q], k: 100 }, { ...headers, 'x-api-key': ADMIN });
  assert.doesNotMatch(withBoth.text, new RegExp(SECRET));
  for (const url of ['/views/train/views/news-only/v1/search', '/views/a%2Fb/v1/search', '/views/%00/v1/search']) {
    assert.equal((await postTo(app, url, { queries: [Q] }, headers)).status, 404, url);
  }
});

test('an unknown view is a 404 that lists the views, on every route that returns passages', { skip }, async (t) => {
  const app = build(t, await bothIndexes(t), { mcp: { hosts: [] } });
  const { status, json, headers } = await postTo(app, '/views/dev/v1/search', { queries: [Q] });
  assert.equal(status, 404);
  assert.equal(errorOf(json).message, 'The index wiki has no view "dev"; it has train, news-only.');
  assert.equal(headers['x-trawl-view'], undefined);
  assert.equal((await postTo(app, '/views/dev/retrieve', { queries: [Q] })).status, 404);
  assert.equal((await postTo(app, '/views/dev/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' })).status, 404);
  assert.equal((await app.inject('/views/dev/v1/passages/wiki-2')).statusCode, 404);
  // Routes without passages have no views to leave.
  assert.equal((await app.inject('/views/dev/v1/indexes')).statusCode, 200);
});

test('an index outside of the indexes of a view cannot be searched in it, not even to embed texts', {
  skip,
}, async (t) => {
  const holder = await bothIndexes(t, [{ ...VIEWS[0]!, indexes: ['wiki'] }]);
  const app = build(t, holder, { views: ['train'] });
  assert.equal((await postTo(app, '/v1/search', { queries: [Q] })).status, 200);
  for (const [path, body] of [
    ['/v1/search', { queries: [Q], index: 'news' }],
    ['/v1/search', { queries: [Q], index: ['wiki', 'news'] }],
    ['/v1/search', { queries: [Q], index: 'all', allowPartial: true }],
    ['/indexes/news/v1/embeddings', { input: [Q], model: 'token-average-256' }],
    ['/indexes/news/retrieve', { queries: [Q] }],
    ['/v1/passages', { ids: ['news-2'], index: 'news' }],
  ] as const) {
    const { status, text } = await postTo(app, path, body);
    assert.equal(status, 404, text);
    // In a group, too, the message names the index that lacks the view.
    assert.match(text, /The index news has no view ..?train..?; it has no views/);
  }
});

interface ElasticsearchReply {
  readonly hits: { readonly hits: readonly { readonly _index: string }[]; readonly total: { readonly value: number } };
  readonly count: number;
  readonly _shards: object;
  readonly docs: readonly { readonly found?: boolean; readonly error?: { readonly reason: string } }[];
  readonly responses: readonly { readonly status: number }[];
}

test("Elasticsearch's patterns find only the indexes that have the view; naming another one is a 404 that names it", {
  skip,
}, async (t) => {
  const holder = await bothIndexes(t, [{ ...VIEWS[0]!, indexes: ['wiki'] }]);
  const all = { query: { match_all: {} }, size: 100 };
  for (const [name, binding] of Object.entries(BINDINGS)) {
    const app = build(t, holder, { ...binding.config, dialects: ['elasticsearch'] });
    const ask = async (url: string, payload: object | string) => {
      const headers = { 'content-type': 'application/json' };
      const response = await inject(app, binding, { method: 'POST', url, payload, headers });
      assert.doesNotMatch(response.payload, new RegExp(SECRET), `${name} ${url}`);
      return { status: response.statusCode, text: response.payload, json: response.json<ElasticsearchReply>() };
    };
    for (const url of ['/_search', '/_all/_search', '/*/_search', '/w*,n*/_search', '/wiki,n*/_search']) {
      const { status, text, json } = await ask(url, all);
      assert.equal(status, 200, `${name} ${url} ${text}`);
      const { hits, total } = json.hits;
      assert.deepEqual([total.value, new Set(hits.map(({ _index }) => _index))], [12, new Set(['wiki'])], url);
      assert.match(text, /"_shards":\{"total":1,/);
    }
    assert.equal((await ask('/_count', {})).json.count, 12);
    assert.deepEqual((await ask('/n*/_search', all)).json._shards, { total: 0, successful: 0, skipped: 0, failed: 0 });
    assert.equal((await ask('/wiki,news/_count?ignore_unavailable=true', {})).json.count, 12);
    for (const url of ['/news/_search', '/wiki,news/_search', '/all/_search', '/*,news/_search', '/wiki,news/_count']) {
      const { status, text } = await ask(url, url.endsWith('_count') ? {} : all);
      assert.equal(status, 404, `${name} ${url} ${text}`);
      assert.match(text, /The index news has no view/);
    }
    const docs = [
      { _index: 'wiki', _id: 'wiki-2' },
      { _index: 'news', _id: 'news-2' },
      { _index: 'none', _id: '1' },
    ];
    const many = await ask('/_mget', { docs });
    assert.equal(many.status, 200, many.text);
    const [found, without, missing] = many.json.docs;
    assert.equal(found!.found, true);
    assert.match(without!.error!.reason, /^The index news has no view/);
    assert.match(missing!.error!.reason, /^no such index \[none\]/);
    const lines = [{ index: '_all' }, all, { index: 'news' }, all].map((line) => `${JSON.stringify(line)}\n`).join('');
    const { responses } = (await ask('/_msearch', lines)).json;
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 404],
    );
  }
});

test('records, metrics and /v1/indexes name the view', { skip }, async (t) => {
  const recorded: [RecordedRequest, RecordedSearch][] = [];
  const record = { record: (...each: [RecordedRequest, RecordedSearch]) => void recorded.push(each) };
  const app = build(t, await bothIndexes(t), { record, views: ['train'] });
  await postTo(app, '/v1/search', { queries: [Q], k: 100 });
  await postTo(app, '/views/news-only/retrieve', { queries: [Q], topk: 100 });
  assert.deepEqual(
    recorded.map(([{ view }]) => view),
    ['train', 'train,news-only'],
  );
  for (const [, { outcomes }] of recorded) {
    for (const outcome of outcomes) {
      assert.ok(outcome.ok && outcome.hits.length > 0 && outcome.hits.every(({ row }) => row % 2 === 0));
    }
  }
  const metrics = (await app.inject('/metrics')).payload;
  assert.match(metrics, /trawl_view_requests_total\{view="train"\} 2\n/);
  assert.match(metrics, /trawl_view_requests_total\{view="news-only"\} 1\n/);
  const { indexes } = (await app.inject('/v1/indexes')).json<{ indexes: { views: { sha256?: string }[] }[] }>();
  assert.deepEqual(
    indexes[0]!.views.map(({ sha256: _, ...view }) => view),
    [
      { name: 'train', passages: 12 },
      { name: 'news-only', passages: 8 },
    ],
  );
});

test('the filter of a server holds for passages by id too', { skip }, async (t) => {
  const filter = { column: 'source', op: '=', value: 'news' } as const;
  const app = build(t, await bothIndexes(t), { filter });
  assert.equal((await app.inject('/v1/passages/wiki-1')).statusCode, 404);
  assert.equal((await app.inject('/v1/passages/wiki-3')).statusCode, 200);
  const { json } = await postTo(app, '/v1/passages', { ids: ['wiki-1', 'wiki-3'], rows: [1, 3] });
  const { passages } = json as { passages: ({ row: number } | null)[] };
  assert.deepEqual(
    passages.map((passage) => passage?.row ?? null),
    [null, 3, null, 3],
  );
});
