import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AccessKeys } from '../../../src/server/access/access-keys.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { build, postTo } from '../build.ts';
import { type Article, articleIndex, ask, elasticsearch, type Json, withoutWords } from './elasticsearch-server.ts';

const skip = withoutWords;
const ARTICLES: readonly Article[] = [
  { id: 'a/1', title: 'Danube', text: 'The Danube flows through Vienna.' },
  { id: 7, title: 'Vienna', text: 'Capital of Austria.' },
  { title: 'No id', text: 'A passage without an id.' },
];
const KEY = 'a-key-of-24-characters-x';
const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('GET / is what clients ask first, and browsers get the search page', async (t) => {
  const app = elasticsearch(t, new FakeRetriever());
  const info = await ask(app, 'GET', '/');
  assert.equal(info.json.version!.number, '8.17.1');
  assert.equal(info.json.tagline, 'You Know, for Search');
  assert.equal((await ask(app, 'HEAD', '/')).status, 200);
  const page = await ask(app, 'GET', '/', undefined, { accept: 'text/html,application/xhtml+xml' });
  assert.match(page.text, /<!doctype html>/i);
  assert.equal(page.headers['x-elastic-product'], 'Elasticsearch');
});

test('without --dialect elasticsearch the routes are absent, and a search names the option', async (t) => {
  const app = build(t);
  assert.match((await ask(app, 'GET', '/')).text, /<!doctype html>/i);
  const { status, json, headers } = await ask(app, 'POST', '/wiki_en/_search', {});
  assert.equal(status, 501);
  assert.match(String(json.error!.message), /--dialect elasticsearch.*--listen 9200=elasticsearch/);
  assert.equal(headers['x-elastic-product'], undefined);
  assert.equal((await ask(app, 'GET', '/_cluster/health')).status, 404);
});

test('a document is found by its id, and one without an id by its row', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const found = await ask(app, 'GET', '/wiki_en/_doc/a%2F1');
  assert.deepEqual(found.json, {
    _index: 'wiki_en',
    _id: 'a/1',
    _version: 1,
    _seq_no: 0,
    _primary_term: 1,
    found: true,
    _source: ARTICLES[0],
  });
  assert.equal((await ask(app, 'HEAD', '/wiki_en/_doc/7')).status, 200);
  assert.deepEqual((await ask(app, 'GET', '/wiki_en/_doc/row%202')).json._source, ARTICLES[2]);
  assert.deepEqual((await ask(app, 'GET', '/wiki_en/_doc/7?_source=title')).json._source, { title: 'Vienna' });
  assert.deepEqual((await ask(app, 'GET', '/wiki_en/_source/7')).json, ARTICLES[1]);
  for (const id of ['x', 'row%200', 'row%209']) {
    const missing = await ask(app, 'GET', `/wiki_en/_doc/${id}`);
    assert.deepEqual([missing.status, missing.json.found], [404, false], id);
  }
  const nowhere = await ask(app, 'GET', '/none/_doc/7');
  assert.deepEqual([nowhere.status, nowhere.json.error!.type], [404, 'index_not_found_exception']);
  assert.equal((await ask(app, 'GET', '/wiki_en/_source/x')).json.error!.type, 'resource_not_found_exception');
});

test('an id has one text, which names it at every door', { skip }, async (t) => {
  // JSON text of ids, in pairs with the text that names them.
  const ids = [
    ['7', '7'],
    ['"007"', '007'],
    ['-0', '0'],
    ['1e3', '1000'],
    ['9007199254740993', '9007199254740993'],
    ['12345678901234567890', '12345678901234567890'],
    ['-5', '-5'],
    ['""', ''],
    ['" a b "', ' a b '],
    ['"A"', 'A'],
    ['"1e3"', '1e3'],
    ['"+7"', '+7'],
  ] as const;
  const rows = ids.map(([json], i) => `{"id":${json},"title":"t${i}","text":"same words"}`);
  const app = elasticsearch(t, await articleIndex(t, rows));
  const names = ids.map(([, name]) => name);
  const unknown = ['0007', '-0', '01000', '1000.0', '1E3', '07', 'a', ' 7', '7 ', '9007199254740992', '000'];
  const titles = async (path: string, body: object): Promise<unknown> => {
    const { status, json, text } = await postTo(app, path, body);
    assert.equal(status, 200, text);
    return json;
  };
  const passages = (await titles('/v1/passages', { ids: [...names, ...unknown] })) as {
    passages: ({ row: number } | null)[];
  };
  const expected = [...names.keys(), ...unknown.map(() => null)];
  assert.deepEqual(
    passages.passages.map((passage) => passage?.row ?? null),
    expected,
  );
  const scores = (await titles('/v1/score', {
    queries: [{ query: 'words', ids: [...names, ...unknown] }],
    modes: ['bm25'],
  })) as { results: { passages: ({ row: number } | null)[] }[] };
  assert.deepEqual(
    scores.results[0]!.passages.map((passage) => passage?.row ?? null),
    expected,
  );
  for (const [row, name] of [...names, ...unknown].entries()) {
    const isKnown = row < names.length;
    if (name !== '') {
      const path = encodeURIComponent(name);
      assert.equal((await ask(app, 'GET', `/v1/passages/${path}`)).status, isKnown ? 200 : 404, name);
      assert.equal((await ask(app, 'GET', `/wiki_en/_doc/${path}`)).json.found, isKnown, name);
    }
    const query = { ids: { values: [name] } };
    const found = (await ask(app, 'POST', '/wiki_en/_search', { query })).json.hits!;
    assert.deepEqual([found.total!.value, found.hits![0]?._id], isKnown ? [1, name] : [0, undefined]);
    const left = (await titles('/v1/search', { queries: ['words'], k: 20, mode: 'bm25', exclude: [name] })) as {
      results: { hits: { row: number }[] }[];
    };
    const others = [...names.keys()].filter((each) => each !== row);
    assert.deepEqual(
      left.results[0]!.hits.map((hit) => hit.row).sort((a, b) => a - b),
      others,
      name,
    );
  }
  // JSON.parse would round the integer to the id of another passage.
  for (const [path, body] of [
    ['/v1/search', '{"queries":["words"],"exclude":[9007199254740993]}'],
    ['/v1/passages', '{"ids":[-9007199254740993]}'],
  ] as const) {
    const { status, text } = await postTo(app, path, body);
    assert.equal(status, 422, text);
    assert.match(text, /send other integers as strings/);
  }
});

test('_mget marks what is missing in the place of the document', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const docs = [
    { _index: 'wiki_en', _id: 'a/1', _source: false },
    { _index: 'wiki_en', _id: 'none' },
    { _index: 'nowhere', _id: '7' },
    { _index: 'wiki_en', _id: 7, _source: ['title'] },
  ];
  const { status, json } = await ask(app, 'POST', '/_mget', { docs });
  assert.equal(status, 200);
  assert.deepEqual(json.docs![0], {
    _index: 'wiki_en',
    _id: 'a/1',
    _version: 1,
    _seq_no: 0,
    _primary_term: 1,
    found: true,
  });
  assert.deepEqual(json.docs![1], { _index: 'wiki_en', _id: 'none', found: false });
  assert.equal(json.docs![2]!.error!.type, 'index_not_found_exception');
  assert.deepEqual(json.docs![3]!._source, { title: 'Vienna' });
  const byIds = await ask(app, 'GET', '/wiki_en/_mget', { ids: ['7', 'x'] });
  assert.deepEqual([byIds.json.docs![0]!.found, byIds.json.docs![1]!.found], [true, false]);
  for (const body of [{}, { docs: [] }, { docs: [{ _id: '7' }] }, { ids: ['7'] }, { foo: [] }]) {
    assert.equal((await ask(app, 'POST', '/_mget', body)).status, 400, JSON.stringify(body));
  }
});

test('_count counts exactly, and refuses what is not a query', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const query = { match: { text: 'vienna austria' } };
  assert.deepEqual((await ask(app, 'POST', '/wiki_en/_count', { query })).json, {
    count: 2,
    _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
  });
  assert.equal((await ask(app, 'GET', '/_count')).json.count, 3);
  const refused = await ask(app, 'POST', '/wiki_en/_count', { query, size: 1 });
  assert.match(String(refused.json.error!.reason), /request does not support \[size\]/);
});

test('_msearch answers each search with a status of its own', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const lines = [
    { index: 'wiki_en' },
    { query: { match: { title: 'vienna' } } },
    { index: ['none'] },
    {},
    {},
    { query: { foo: {} } },
    { index: 'wiki_*' },
    { size: 0 },
  ];
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const headers = { 'content-type': 'application/x-ndjson' };
  const { status, json } = await ask(app, 'POST', '/wiki_en/_msearch', body, headers);
  assert.equal(status, 200);
  const parts = json.responses as unknown as {
    status: number;
    hits?: { total: { value: number } };
    error?: { type: string };
  }[];
  assert.deepEqual(
    parts.map((part) => [part.status, part.hits?.total.value ?? part.error?.type]),
    [
      [200, 1],
      [404, 'index_not_found_exception'],
      [400, 'parsing_exception'],
      [200, 3],
    ],
  );
  for (const wrong of ['', '{}\n{}', '{}\n', '{"foo":1}\n{}\n']) {
    const reply = await ask(app, 'POST', '/_msearch', wrong, headers);
    const failed = reply.status === 400 ? reply.json : reply.json.responses![0]!;
    assert.equal(failed.status, 400, JSON.stringify(wrong));
  }
  const limited = elasticsearch(t, await articleIndex(t, ARTICLES), { maxQueries: 1, maxHits: 12 });
  assert.equal((await ask(limited, 'POST', '/_msearch', '{}\n{}\n{}\n{}\n', headers)).status, 400);
  const tooMany = await ask(limited, 'POST', '/_msearch', '{}\n{"size":13}\n', headers);
  assert.match(String(tooMany.json.responses![0]!.error!.reason), /13 passages; the limit of this server is 12/);
});

test('an index can be looked for, listed and described', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  assert.equal((await ask(app, 'HEAD', '/wiki_en')).status, 200);
  assert.equal((await ask(app, 'HEAD', '/none')).status, 404);
  const { json } = await ask(app, 'GET', '/wiki_en/_mapping');
  assert.deepEqual(json.wiki_en!.mappings!.properties!.title, { type: 'text', analyzer: 'standard' });
  assert.deepEqual((await ask(app, 'GET', '/wiki_en')).json.wiki_en!.mappings, json.wiki_en!.mappings);
  const table = await ask(app, 'GET', '/_cat/indices?v&h=index,docs.count,health');
  assert.equal(table.text, 'index   docs.count health\nwiki_en 3          green\n');
  assert.match(String(table.headers['content-type']), /^text\/plain/);
  const rows = await ask(app, 'GET', '/_cat/indices/wiki_*?format=json');
  assert.deepEqual([rows.json[0]!.index, rows.json[0]!['docs.count']], ['wiki_en', '3']);
  assert.equal((await ask(app, 'GET', '/_cat/indices?h=nothing')).status, 400);
  assert.equal((await ask(app, 'GET', '/_cluster/health')).json.status, 'green');
});

test('replies have the media type that accept names, and a version in only one header is refused', {
  skip,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const type = (version: number): string => `application/vnd.elasticsearch+json; compatible-with=${version}`;
  for (const version of [8, 9]) {
    const headers = { accept: type(version), 'content-type': type(version) };
    for (const [body, status] of [
      [{}, 200],
      [{ foo: 1 }, 400],
    ] as const) {
      const reply = await ask(app, 'POST', '/wiki_en/_search', body, headers);
      assert.equal(reply.status, status);
      assert.equal(reply.headers['content-type'], `application/vnd.elasticsearch+json;compatible-with=${version}`);
    }
  }
  for (const headers of [
    { accept: type(8) },
    { 'content-type': type(8) },
    { accept: type(8), 'content-type': type(9) },
  ] as Record<string, string>[]) {
    const reply = await ask(app, 'POST', '/wiki_en/_search', {}, headers);
    assert.deepEqual([reply.status, reply.json.error!.type], [400, 'media_type_header_exception']);
  }
  assert.equal((await ask(app, 'GET', '/wiki_en', undefined, { accept: type(8) })).status, 200);
  const plain = await ask(app, 'POST', '/wiki_en/_search', '{}', { 'content-type': 'text/plain' });
  assert.deepEqual(plain.json, { error: 'Content-Type header [text/plain] is not supported', status: 406 });
});

test('Basic and ApiKey carry an API key, and a wrong one is a security_exception', { skip }, async (t) => {
  const keys = AccessKeys.parse(`read:${KEY}`, 'keys');
  const app = elasticsearch(t, await articleIndex(t, ARTICLES), { keys });
  const status = async (authorization: string | undefined, url = '/wiki_en/_count'): Promise<number> =>
    (await ask(app, 'GET', url, undefined, authorization === undefined ? {} : { authorization })).status;
  for (const right of [
    `Basic ${base64(`elastic:${KEY}`)}`,
    `ApiKey ${KEY}`,
    `ApiKey ${base64(`id:${KEY}`)}`,
    `Bearer ${KEY}`,
  ]) {
    assert.deepEqual([await status(right), await status(right, '/')], [200, 200], right);
  }
  for (const wrong of [
    undefined,
    `Basic ${base64(`${KEY}:elastic`)}`,
    `Basic ${KEY}`,
    `ApiKey ${base64('id:x')}`,
    'Basic !!',
  ]) {
    assert.deepEqual([await status(wrong), await status(wrong, '/')], [401, 401], String(wrong));
  }
  const { json, headers } = await ask(app, 'POST', '/wiki_en/_search', {});
  assert.deepEqual([json.error!.type, json.status], ['security_exception', 401]);
  assert.match(String(headers['www-authenticate']), /Basic realm="security".*ApiKey.*Bearer/);
  assert.equal((await ask(app, 'GET', '/', undefined, { accept: 'text/html' })).status, 200, 'the page needs no key');
});

test('an index without words is refused with the way to make it', async (t) => {
  const { status, json } = await ask(elasticsearch(t, new FakeRetriever()), 'POST', '/_search', {});
  assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception']);
});

test("a path or a method that the server does not have is an error in Elasticsearch's form", async (t) => {
  const app = build(t, undefined, { dialects: ['elasticsearch'] });
  const vendor = { accept: 'application/vnd.elasticsearch+json; compatible-with=8' };
  for (const [method, url, status, headers] of [
    ['GET', '/_nodes/stats', 400, {}],
    ['PUT', '/_ingest/pipeline/p', 400, {}],
    ['POST', '/wiki/_delete_everything', 400, {}],
    ['DELETE', '/wiki/_search', 405, {}],
    ['GET', '/a/b/c', 400, vendor],
    ['GET', '/wiki/_doc/%zz', 404, {}],
  ] as const) {
    const reply = await ask(app, method, url, undefined, headers);
    assert.equal(reply.status, status, `${url}: ${reply.text}`);
    assert.equal(typeof reply.json.error!.type, 'string', reply.text);
    assert.equal(reply.json.status, status as unknown as Json);
    assert.deepEqual(reply.json.error!.root_cause![0]!.reason, reply.json.error!.reason);
    assert.equal(reply.headers['x-elastic-product'], 'Elasticsearch');
  }
  // Clients of other dialects get their own form at the same address.
  assert.deepEqual(Object.keys((await ask(app, 'GET', '/a/b/c')).json), ['detail', 'error']);
});

test('_analyze returns the words of a text with their places', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const tokens = async (url: string, body: object): Promise<unknown> => {
    const { json, text } = await ask(app, 'POST', url, body);
    return (json.tokens as unknown as object[] | undefined)?.map((token) => Object.values(token)) ?? text;
  };
  assert.deepEqual(await tokens('/_analyze', { analyzer: 'english', text: 'The 2 Bridges' }), [
    ['2', 4, 5, '<NUM>', 1],
    ['bridg', 6, 13, '<ALPHANUM>', 2],
  ]);
  assert.deepEqual(await tokens('/wiki_en/_analyze', { field: 'title', text: ['A b', 'c'] }), [
    ['a', 0, 1, '<ALPHANUM>', 0],
    ['b', 2, 3, '<ALPHANUM>', 1],
    ['c', 4, 5, '<ALPHANUM>', 102],
  ]);
  const { status: most } = await ask(app, 'POST', '/_analyze', { text: 'a '.repeat(10_000) });
  assert.equal(most, 200);
  for (const [text, reason] of [
    ['a '.repeat(10_001), /10001 tokens, but \[_analyze\] returns at most \[10000\]/],
    [Array.from({ length: 3 }, () => ' '.repeat(400_000)), /has 1200002 characters/],
  ] as const) {
    const { status, json } = await ask(app, 'POST', '/_analyze', { text });
    assert.equal(status, 400);
    assert.match(String(json.error!.reason), reason);
  }
  for (const body of [{}, { text: 'a', analyzer: 'x' }, { text: 'a', field: 'id' }, { text: 'a', tokenizer: 'x' }]) {
    const { status, json } = await ask(app, 'POST', '/wiki_en/_analyze', body);
    assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception'], JSON.stringify(body));
  }
});
