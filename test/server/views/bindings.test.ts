import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RecordedRequest, RecordedSearch } from '../../../src/server/recording/recorded-search.ts';
import { build, errorOf, postTo } from '../build.ts';
import { ADMIN, BINDINGS, bothIndexes, inject, KEY, PASSAGES, Q, SECRET, skip, VIEWS } from './viewed-indexes.ts';

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
