import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { cancelled } from '../../../src/base/abort.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { AnswerCache } from '../../../src/search/layers/answer-cache.ts';
import { passingRetriever } from '../../../src/search/layers/passing-retriever.ts';
import { SharedSearch } from '../../../src/search/layers/shared-search.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { opened } from '../../helpers/opened.ts';
import { type Article, articleIndex, ask, elasticsearch, type Json, withoutWords } from './elasticsearch-server.ts';

const skip = withoutWords;

const ARTICLES: readonly Article[] = [
  {
    id: '12',
    url: 'https://en.wikipedia.org/wiki/Danube',
    title: 'Danube',
    text: 'The Danube flows through Vienna and Budapest.',
  },
  { id: '13', title: 'Vienna', text: 'Capital of Austria, on the river Danube.' },
  {
    id: 14,
    title: 'Budapest',
    text: 'Vienna is upstream; a river is there.',
    meta: { tags: ['a', 'b'], year: 1900 },
  },
  { id: '15', title: 'River', text: 'river river river' },
  { title: 'No id', text: 'A passage without an id.' },
];

const ids = (reply: { json: Json }): string[] =>
  [...(reply.json.hits!.hits as unknown as { _id: string }[])].map(({ _id }) => _id);

test("ArtSearch's search answers as Elasticsearch does, with the product header", { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const body = { query: { multi_match: { query: 'the river danube', fields: ['title', 'text'] } }, size: 2 };
  const { status, json, headers } = await ask(app, 'POST', '/wiki_en/_search', body);
  assert.equal(status, 200);
  assert.equal(headers['x-elastic-product'], 'Elasticsearch');
  assert.equal(headers['content-type'], 'application/json');
  const { took, ...rest } = json;
  assert.ok(Number(took) >= 0);
  assert.deepEqual(rest, {
    timed_out: false,
    _shards: { total: 1, successful: 1, skipped: 0, failed: 0 },
    hits: {
      total: { value: 4, relation: 'eq' },
      max_score: json.hits!.max_score,
      hits: [
        { _index: 'wiki_en', _id: '13', _score: json.hits!.max_score, _source: ARTICLES[1] },
        { _index: 'wiki_en', _id: '12', _score: json.hits!.hits![1]!._score, _source: ARTICLES[0] },
      ].sort((a, b) => Number(b._score) - Number(a._score)),
    },
  });
});

test('each query of the DSL finds its passages', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const found = async (query: object): Promise<string[]> => {
    const reply = await ask(app, 'POST', '/wiki_en/_search', { query });
    assert.equal(reply.status, 200, reply.text);
    return ids(reply).sort();
  };
  const cases: readonly (readonly [object, readonly string[]])[] = [
    [{ match: { text: 'VIENNA' } }, ['12', '14']],
    [{ match: { text: { query: 'vienna river', operator: 'AND' } } }, ['14']],
    [{ match: { text: { query: 'vienna river there', minimum_should_match: '67%' } } }, ['14']],
    [{ match: { text: { query: 'vienna river', minimum_should_match: 2 } } }, ['14']],
    [{ match: { text: { query: '...', zero_terms_query: 'all' } } }, ['12', '13', '14', '15', 'row 4']],
    [{ match: { text: { query: 'vienna', fuzziness: '0' } } }, ['12', '14']],
    [{ match: { text: '...' } }, []],
    [{ match: { unknown: 'vienna' } }, []],
    [{ multi_match: { query: 'river' } }, ['13', '14', '15']],
    [{ multi_match: { query: 'river', fields: 't*xt' } }, ['13', '14', '15']],
    [{ multi_match: { query: 'river', fields: ['title^3', 'absent'], type: 'most_fields' } }, ['15']],
    [{ multi_match: { query: 'river', fields: ['absent'] } }, []],
    [{ term: { title: 'vienna' } }, ['13']],
    [{ term: { title: { value: 'Vienna' } } }, []],
    [{ term: { _id: '14' } }, ['14']],
    [{ terms: { title: ['vienna', 'river'], boost: 2 } }, ['13', '15']],
    [{ ids: { values: ['12', 14, 'none'] } }, ['12', '14']],
    [{ ids: { values: [] } }, []],
    [{ exists: { field: 'text' } }, ['12', '13', '14', '15', 'row 4']],
    [{ exists: { field: 'nothing' } }, []],
    [{ match_none: {} }, []],
    [{ bool: {} }, ['12', '13', '14', '15', 'row 4']],
    [{ bool: { must_not: { term: { text: 'river' } } } }, ['12', 'row 4']],
    [{ bool: { must_not: { term: { text: 'river' } }, adjust_pure_negative: false } }, []],
    [{ bool: { filter: [{ ids: { values: ['12', '13'] } }], should: { match: { text: 'capital' } } } }, ['12', '13']],
    [{ bool: { must: { match: { text: 'river' } }, must_not: [{ ids: { values: ['15'] } }] } }, ['13', '14']],
    [{ bool: { must_not: { term: { text: 'river' } }, mustNot: { ids: { values: ['12'] } } } }, ['row 4']],
    [
      {
        bool: {
          should: [{ term: { text: 'river' } }, { term: { text: 'vienna' } }, { term: { text: 'is' } }],
          minimum_should_match: '-1',
        },
      },
      ['14'],
    ],
    [
      { dis_max: { queries: [{ term: { text: 'capital' } }, { term: { title: 'river' } }], tie_breaker: 0.5 } },
      ['13', '15'],
    ],
    [{ constant_score: { filter: { match: { text: 'danube' } }, boost: 3 } }, ['12', '13']],
  ];
  for (const [query, expected] of cases) assert.deepEqual(await found(query), expected, JSON.stringify(query));
});

test('constant queries score their boost, and only filters or exclusions score 0', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const best = async (query: object): Promise<string | undefined> =>
    /"max_score":([^,]+)/.exec((await ask(app, 'POST', '/wiki_en/_search', { query })).text)?.[1];
  assert.equal(await best({ match_all: {} }), '1.0');
  assert.equal(await best({ match_all: { boost: 2.5 } }), '2.5');
  assert.equal(await best({ ids: { values: ['12'], boost: 0.1 } }), '0.1');
  assert.equal(await best({ bool: {} }), '1.0');
  assert.equal(await best({ bool: { filter: { match: { text: 'river' } } } }), '0.0');
  assert.equal(await best({ bool: { must_not: { match: { text: 'river' } } } }), '0.0');
  assert.equal(await best({ constant_score: { filter: { match: { text: 'river' } }, boost: 1e-7 } }), '1.0E-7');
  assert.equal(await best({ match_all: { boost: 12345678 } }), '1.2345678E7');
  assert.equal(await best({ match_none: {} }), 'null');
});

test('size, from, min_score and track_total_hits shape the reply', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const search = async (body: object, url = '/wiki_en/_search') => (await ask(app, 'POST', url, body)).json;
  const river = { match: { text: 'river' } };
  const all = await search({ query: river });
  const scores = [0, 1, 2].map((i) => Number(all.hits!.hits![i]!._score));
  assert.deepEqual((await search({ query: river, from: 1, size: 1 })).hits!.hits, [all.hits!.hits![1]]);
  assert.equal((await search({ query: river, from: 1, size: 1 })).hits!.max_score, scores[0]);
  assert.deepEqual((await search({ query: river, from: 7 })).hits!.hits, []);
  const none = await search({ query: river, size: 0 });
  assert.deepEqual(none.hits, { total: { value: 3, relation: 'eq' }, max_score: null, hits: [] });
  assert.deepEqual((await search({ query: river, track_total_hits: 2 })).hits!.total, { value: 2, relation: 'gte' });
  assert.deepEqual((await search({ query: river, track_total_hits: 3 })).hits!.total, { value: 3, relation: 'eq' });
  assert.equal(Object.hasOwn((await search({ query: river, track_total_hits: false })).hits!, 'total'), false);
  assert.deepEqual((await search({ query: river, min_score: scores[0] })).hits!.total, { value: 1, relation: 'eq' });
  assert.equal((await search({ query: river }, '/_search?size=1&rest_total_hits_as_int=true')).hits!.total, 3);
  assert.deepEqual((await search({ query: { match: { text: 'zzz' } } })).hits, {
    total: { value: 0, relation: 'eq' },
    max_score: null,
    hits: [],
  });
  const { status, json } = await ask(app, 'GET', '/wiki_en/_search');
  assert.deepEqual([status, json.hits!.total], [200, { value: 5, relation: 'eq' }]);
});

test('_source chooses members by patterns and keeps the notation of numbers', { skip }, async (t) => {
  const row = '{"id": 14, "title":"Budapest","text":"t","meta":{"views":9007199254740993,"tags":["a","b"],"big":1.50}}';
  const app = elasticsearch(t, await articleIndex(t, [row]));
  const source = async (_source: unknown, parameters = ''): Promise<string | undefined> => {
    const query = { ids: { values: ['14'] } };
    const { text } = await ask(app, 'POST', `/wiki_en/_search${parameters}`, { query, _source });
    return /"_source":(\{.*\})\}\]/.exec(text)?.[1];
  };
  assert.equal(await source(true), row);
  assert.equal(await source(false), undefined);
  assert.equal(await source('meta.views'), '{"meta":{"views":9007199254740993}}');
  assert.equal(await source(['ti*', 'meta.tags']), '{"title":"Budapest","meta":{"tags":["a","b"]}}');
  assert.equal(
    await source({ includes: ['meta'], excludes: ['*.tags', 'meta.b*'] }),
    '{"meta":{"views":9007199254740993}}',
  );
  assert.equal(await source({ excludes: ['meta', 'text', 'id'] }), '{"title":"Budapest"}');
  assert.equal(await source(['nothing']), '{}');
  assert.equal(await source(undefined, '?_source_includes=title,id'), '{"id":14,"title":"Budapest"}');
  assert.equal(await source(true, '?_source=false'), undefined);
});

test('faults are answered with the errors of Elasticsearch', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const cases: readonly (readonly [body: unknown, type: string, reason: RegExp])[] = [
    [{ query: { foo: {} } }, 'parsing_exception', /^unknown query \[foo\]$/],
    [
      { query: { match_phrase: { text: 'a' } } },
      'parsing_exception',
      /unknown query \[match_phrase\].*positions|no start_object/,
    ],
    [{ query: { match_phrase: { text: { query: 'a' } } } }, 'parsing_exception', /no positions/],
    [{ query: { bool: { foo: 1 } } }, 'x_content_parse_exception', /^\[1:19\] \[bool\] unknown field \[foo\]$/],
    [{ query: {} }, 'illegal_argument_exception', /empty clause found at \[1:10\]/],
    [{ query: [] }, 'parsing_exception', /must start with start_object/],
    [{ query: { match: 'x' } }, 'parsing_exception', /\[match\] query malformed, no start_object/],
    [{ query: { match: {}, term: {} } }, 'parsing_exception', /\[match\]/],
    [{ query: { match: { text: 'a' }, term: {} } }, 'parsing_exception', /expected \[END_OBJECT\]/],
    [
      { query: { match: { text: 'a', title: 'b' } } },
      'parsing_exception',
      /multiple fields, found \[text\] and \[title\]/,
    ],
    [
      { query: { match: { text: { query: 'a', foo: 1 } } } },
      'parsing_exception',
      /\[match\] query does not support \[foo\]/,
    ],
    [
      { query: { match: { text: { query: 'a', fuzziness: 'AUTO' } } } },
      'parsing_exception',
      /\[fuzziness\] is \[AUTO\], but this server finds whole words only: send 0/,
    ],
    [{ query: { match: { text: { operator: 'or' } } } }, 'parsing_exception', /No text specified/],
    [{ query: { match: { text: { query: 'a', boost: -1 } } } }, 'illegal_argument_exception', /negative \[boost\]/],
    [
      { query: { match: { text: { query: 'a', operator: 'xor' } } } },
      'illegal_argument_exception',
      /\[operator\] is \[xor\]/,
    ],
    [
      { query: { multi_match: { query: 'a', type: 'cross_fields' } } },
      'illegal_argument_exception',
      /cross_fields\] is not supported by this server\. Use best_fields or most_fields/,
    ],
    [{ query: { multi_match: { query: 'a', type: 'x' } } }, 'parse_exception', /unknown type/],
    [{ query: { multi_match: { query: 'a', fields: ['title^x'] } } }, 'illegal_argument_exception', /"x"/],
    [{ query: { term: { text: ['a'] } } }, 'parsing_exception', /array/],
    [{ query: { terms: { text: 'a' } } }, 'parsing_exception', /VALUE_STRING/],
    [{ query: { exists: {} } }, 'parsing_exception', /\[field\]/],
    [{ query: { ids: { values: 'a' } } }, 'parsing_exception', /array/],
    [{ query: { constant_score: {} } }, 'parsing_exception', /'filter'/],
    [{ query: { dis_max: { queries: [] } } }, 'parsing_exception', /at least one clause/],
    [{ size: -1 }, 'illegal_argument_exception', /\[size\] parameter cannot be negative, found \[-1\]/],
    [{ from: -1 }, 'illegal_argument_exception', /\[from\] parameter cannot be negative but was \[-1\]/],
    [{ size: 'many' }, 'parsing_exception', /\[size\] must be a number/],
    [{ foo: 1 }, 'parsing_exception', /Unknown key for a VALUE_NUMBER in \[foo\]\./],
    [{ aggs: {} }, 'illegal_argument_exception', /\[aggs\] is not supported/],
    [{ track_total_hits: -2 }, 'illegal_argument_exception', /track_total_hits/],
    ['{"query":', 'x_content_e_o_f_exception', /\[1:10\]/],
    ['{"query" 1}', 'x_content_parse_exception', /\[1:10\]/],
    ['{"size":1,"size":2}', 'x_content_parse_exception', /Duplicate field 'size'/],
    [Buffer.from([0x22, 0xff, 0x22]), 'illegal_argument_exception', /UTF-8/],
  ];
  for (const [body, type, reason] of cases) {
    const { status, json, headers } = await ask(app, 'POST', '/wiki_en/_search', body);
    const shown = String(body instanceof Buffer ? body : JSON.stringify(body));
    assert.deepEqual([status, json.status], [400, 400], shown);
    assert.equal(json.error!.type, type, shown);
    assert.match(String(json.error!.reason), reason, shown);
    assert.deepEqual((json.error!.root_cause as Json)[0]!.type, type, shown);
    assert.equal(headers['x-elastic-product'], 'Elasticsearch', shown);
  }
  const shard: readonly (readonly [object, string, RegExp])[] = [
    [
      { from: 9_999, size: 2 },
      'illegal_argument_exception',
      /must be less than or equal to: \[10000\] but was \[10001\]/,
    ],
    [{ query: { dis_max: { queries: [{ match_all: {} }], tie_breaker: 2 } } }, 'query_shard_exception', /in \[0, 1\]/],
    [{ query: { match: { text: { query: 'a b', minimum_should_match: 'x' } } } }, 'query_shard_exception', /"x"/],
  ];
  for (const [body, type, reason] of shard) {
    const { status, json } = await ask(app, 'POST', '/wiki_en/_search', body);
    assert.deepEqual([status, json.error!.type], [400, 'search_phase_execution_exception']);
    assert.equal(json.error!.root_cause![0]!.type, type);
    assert.match(String(json.error!.root_cause![0]!.reason), reason);
  }
  const unknown = await ask(app, 'POST', '/wiki_en/_search', '{\n "query": {"bool": {"must": [\n  {"foo": {}}]}}}');
  const { type, reason, line, col } = unknown.json.error!.root_cause![0]!;
  assert.deepEqual([type, reason, line, col], ['parsing_exception', 'unknown query [foo]', 3, 11]);
  assert.equal(unknown.json.error!.reason, '[3:11] [bool] failed to parse field [must]');
  const parameter = await ask(app, 'POST', '/wiki_en/_search?slices=2', {});
  assert.match(
    String(parameter.json.error!.reason),
    /request \[\/wiki_en\/_search\] contains unrecognized parameter: \[slices\]/,
  );
  const many = await ask(elasticsearch(t, await articleIndex(t, ARTICLES), { maxK: 5 }), 'POST', '/_search', {
    size: 6,
  });
  assert.deepEqual([many.status, many.json.error!.type], [400, 'illegal_argument_exception']);
  assert.match(String(many.json.error!.reason), /size is 6; the limit of this server is 5/);
});

test('an unknown index is a 404, and names may be lists and patterns', { skip }, async (t) => {
  const retrievers = [
    await articleIndex(t, ARTICLES, { name: 'wiki_en' }),
    await articleIndex(t, [{ id: 'z', title: 'Wien', text: 'river Wien, a river' }], { name: 'wiki_de' }),
  ];
  const targets = retrievers.map(({ info }) => ({ name: info.index, folder: info.index }));
  const holder = IndexRegistry.opening(targets, async (name) => retrievers.find(({ info }) => info.index === name)!);
  await holder.open();
  const app = elasticsearch(t, holder);
  const query = { match: { text: 'river' } };
  const missing = await ask(app, 'POST', '/wiki_unsupported/_search', { query });
  assert.equal(missing.status, 404);
  assert.deepEqual(missing.json.error!.root_cause![0], {
    type: 'index_not_found_exception',
    reason: 'no such index [wiki_unsupported]',
    'resource.type': 'index_or_alias',
    'resource.id': 'wiki_unsupported',
    index_uuid: '_na_',
    index: 'wiki_unsupported',
  });
  assert.equal((await ask(app, 'POST', '/wiki_en,nope/_search', { query })).status, 404);
  const lenient = await ask(app, 'POST', '/wiki_en,nope/_search?ignore_unavailable=true', { query });
  assert.equal(lenient.json._shards!.total, 1);
  const alone = await Promise.all(
    ['wiki_en', 'wiki_de'].map((name) => ask(app, 'POST', `/${name}/_search`, { query })),
  );
  const merged = alone
    .flatMap(({ json }) => [...(json.hits!.hits as unknown as { _score: number }[])])
    .sort((a, b) => b._score - a._score);
  for (const names of ['/_search', '/_all/_search', '/wiki_*/_search', '/wiki_de,wiki_en/_search']) {
    const { json } = await ask(app, 'POST', names, { query });
    assert.equal(json._shards!.total, 2, names);
    assert.deepEqual(json.hits!.total, { value: 4, relation: 'eq' });
    assert.equal(json.hits!.max_score, merged[0]!._score);
    assert.deepEqual(json.hits!.hits, merged);
  }
  const second = await ask(app, 'POST', '/_search', { query, from: 1, size: 2 });
  assert.deepEqual(second.json.hits!.hits, merged.slice(1, 3));
});

test('an index with title and text as one field says so instead of finding nothing', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { fields: ['contents'] }));
  const query = { multi_match: { query: 'river', fields: ['title', 'text'] } };
  const { status, json } = await ask(app, 'POST', '/wiki_en/_search', { query });
  assert.equal(status, 400);
  assert.match(String(json.error!.reason), /one field, \[contents\].*--bm25-fields title,text/);
  const whole = await ask(app, 'POST', '/wiki_en/_search', { query: { multi_match: { query: 'river' } } });
  assert.deepEqual(ids(whole).sort(), ['13', '14', '15']);
});

test('the filter of an address holds for every query', { skip }, async (t) => {
  const articles = ARTICLES.map((article, i) => ({ ...article, year: 1900 + i }));
  const filter = { column: 'year', op: '>=', value: 1902 } as const;
  const index = await articleIndex(t, articles, { columns: [{ name: 'year', type: 'number' }] });
  const limited = elasticsearch(t, index, { filter });
  const found = async (body: object): Promise<string[]> =>
    ids(await ask(limited, 'POST', '/wiki_en/_search', body)).sort();
  assert.deepEqual(await found({ query: { match: { text: 'river' } } }), ['14', '15']);
  assert.deepEqual(await found({ query: { range: { year: { lte: 1902 } } }, sort: 'year' }), ['14']);
  assert.equal((await ask(limited, 'POST', '/wiki_en/_count')).json.count, 3);
});

test('a search ends at the time limit of the request, with an error instead of a part of the hits', {
  skip,
}, async (t) => {
  const inner = await articleIndex(t, ARTICLES);
  const slow = passingRetriever(inner, (call) => call, {
    searchTree: ({ signal }) =>
      new Promise((_resolve, reject) => {
        // The timer of a time limit does not keep the process alive.
        const alive = setInterval(() => undefined, 1_000);
        signal?.addEventListener('abort', () => {
          clearInterval(alive);
          reject(cancelled());
        });
      }),
  });
  const app = elasticsearch(t, opened(slow, inner));
  const query = { match: { text: 'river' } };
  for (const [url, body, headers, message] of [
    ['/wiki_en/_search', { query, timeout: '20ms' }, {}, /its timeout of 20 ms/],
    ['/wiki_en/_search?timeout=30ms', { query }, {}, /its timeout of 30 ms/],
    ['/wiki_en/_search', { query, timeout: '1h' }, { 'x-request-timeout-ms': '40' }, /within 40 ms/],
  ] as const) {
    const { status, json } = await ask(app, 'POST', url, body, headers);
    assert.deepEqual([status, json.error!.type], [503, 'timeout_exception']);
    assert.match(String(json.error!.reason), message);
  }
});

test('a query of many unknown fields looks at the sample of passages once', { skip }, async (t) => {
  const inner = await articleIndex(t, ARTICLES);
  let finds = 0;
  const counting = passingRetriever(inner, (call) => call, {
    find: (call) => {
      finds += Number(call.by === 'row');
      return inner.find(call);
    },
  });
  const app = elasticsearch(t, opened(counting, inner));
  const should = Array.from({ length: 500 }, (_, i) => ({ term: { [`unknown${i}`]: 'x' } }));
  const none = await ask(app, 'POST', '/wiki_en/_search', { query: { bool: { should } } });
  assert.deepEqual([none.status, none.json.hits!.total!.value, finds], [200, 0, 1]);
  const stored = { bool: { should: [...should, { term: { url: 'x' } }] } };
  assert.match((await ask(app, 'POST', '/wiki_en/_search', { query: stored })).text, /\[url\] is stored/);
});

test('clients of _search and _msearch learn no path of a damaged file', { skip }, async (t) => {
  const inner = await articleIndex(t, ARTICLES);
  const broken = passingRetriever(inner, (call) => call, {
    searchTree: () => Promise.reject(new TrawlError('FILE_CHANGED', '/private/words.bin has changed.')),
  });
  const app = elasticsearch(t, opened(broken, inner));
  for (const [url, body] of [
    ['/wiki_en/_search', '{}'],
    ['/wiki_en/_msearch', '{}\n{}\n'],
  ] as const) {
    const { text } = await ask(app, 'POST', url, body);
    assert.match(text, /no_shard_available_action_exception.*was changed or damaged/);
    assert.doesNotMatch(text, /private/);
  }
});

test('equal searches come from the answer cache, and count as its answers', { skip }, async (t) => {
  const inner = await articleIndex(t, ARTICLES, { columns: [{ name: 'title', type: 'string' }] });
  const shared = new SharedSearch(inner, inner.info, { answerCache: new AnswerCache(1e6), singleFlight: true });
  const retriever = passingRetriever(inner, (call) => call, { searchTree: (call) => shared.searchTree(call) });
  const app = elasticsearch(t, opened(retriever, inner));
  const bodies = [
    { query: { match: { text: 'river' } } },
    { query: { match: { text: 'river' } }, from: 1 },
    { query: { match: { text: 'river' } }, sort: 'title.keyword' },
    { query: { term: { 'title.keyword': 'River' } } },
  ];
  const ask2 = async () => {
    const texts: string[] = [];
    for (const body of bodies)
      texts.push((await ask(app, 'POST', '/wiki_en/_search', body)).text.replace(/"took":\d+/, ''));
    return texts;
  };
  const first = await ask2();
  const { computed, cached } = shared.load;
  assert.deepEqual(await ask2(), first);
  const after = shared.load;
  assert.deepEqual([after.cached - cached, after.computed - computed], [bodies.length, 0]);
  // Without a sort, hits have their scores in any case.
  await ask(app, 'POST', '/wiki_en/_search', { ...bodies[0], track_scores: true });
  assert.equal(shared.load.computed, computed);
});

test('searches of a request are refused once the replies before them are too long, and those before are answered', {
  skip,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES), { maxReplyBytesInFlight: 4_000 });
  const { json } = await ask(app, 'POST', '/_msearch', '{}\n{}\n'.repeat(20));
  const statuses = Array.from({ length: 20 }, (_, i) => Number(json.responses![i]!.status));
  const refused = statuses.indexOf(400);
  assert.ok(refused > 0, String(statuses));
  assert.deepEqual(statuses.slice(0, refused), Array(refused).fill(200));
  assert.deepEqual(statuses.slice(refused), Array(20 - refused).fill(400));
  assert.match(JSON.stringify(json.responses![refused]), /have \d{4,} characters; the limit of this server is 1000/);
});

test('a text over --max-query-chars is refused wherever the query has it; one of that length is searched', {
  skip,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES), { maxQueryChars: 20 });
  const [fits, long] = ['x'.repeat(20), 'x'.repeat(21)];
  const queries = (text: string): readonly object[] => [
    { match: { text } },
    { multi_match: { query: text, fields: ['title'] } },
    { bool: { must_not: [{ constant_score: { filter: { match: { title: text } } } }] } },
    { dis_max: { queries: [{ match_all: {} }, { match: { text } }] } },
  ];
  for (const query of queries(fits)) assert.equal((await ask(app, 'POST', '/wiki_en/_search', { query })).status, 200);
  for (const query of queries(long)) {
    for (const url of ['/wiki_en/_search', '/_count']) {
      const { status, text, json } = await ask(app, 'POST', url, { query });
      assert.equal(status, 400, text);
      assert.match(String(json.error!.reason), /21 characters; the limit of this server is 20 \(--max-query-chars\)/);
    }
    const { json } = await ask(app, 'POST', '/_msearch', `{}\n${JSON.stringify({ query })}\n{}\n{}\n`);
    assert.deepEqual([json.responses![0]!.status, json.responses![1]!.status], [400, 200]);
  }
  const knn = { field: 'vector', query_vector: [1], k: 1, num_candidates: 1, filter: { match: { text: long } } };
  assert.match((await ask(app, 'POST', '/_search', { knn })).text, /21 characters/);
});

/** The ids that a scroll finds, page by page. */
async function scrolled(app: FastifyInstance, body: object, parameters = 'scroll=1m'): Promise<string[][]> {
  const pages: string[][] = [];
  let reply = await ask(app, 'POST', `/wiki_en/_search?${parameters}`, body);
  for (;;) {
    assert.equal(reply.status, 200, reply.text);
    const { hits, _scroll_id: id } = reply.json as unknown as {
      hits: { total: { value: number }; hits: { _id: string; sort?: unknown[]; _score: number | null }[] };
      _scroll_id: string;
    };
    if (hits.hits.length === 0) return pages;
    assert.equal(hits.total.value, 25);
    pages.push(hits.hits.map(({ _id }) => _id));
    reply = await ask(app, 'POST', '/_search/scroll', { scroll_id: id, scroll: '1m' });
  }
}

test('a scroll and a point in time return every match once, in the order of one search', { skip }, async (t) => {
  const articles = Array.from({ length: 30 }, (_, i) => ({
    id: String(i),
    title: `Title ${i % 7}`,
    text: `${i % 6 === 0 ? 'road' : 'bridge'} ${'bridge '.repeat(i % 3)}`,
    year: 1900 + (i % 4),
  }));
  const retriever = await articleIndex(t, articles, { columns: [{ name: 'year', type: 'number' }] });
  const app = elasticsearch(t, retriever);
  const query = { match: { text: 'bridge' } };
  const all = ids(await ask(app, 'POST', '/wiki_en/_search', { query: { match: { text: 'bridge' } }, size: 100 }));
  const matching = all.length;
  assert.ok(matching > 20);
  const text = { bool: { must: query, must_not: { ids: { values: all.slice(25) } } } };
  for (const [sort, parameters] of [
    [undefined, 'scroll=1m'],
    [['_doc'], 'scroll=1m&size=4'],
    [[{ year: 'desc' }], 'scroll=1m'],
    [['_score', { year: 'asc' }], 'scroll=1m'],
  ] as const) {
    const body = { query: text, size: 4, sort };
    const { json, status, text: shown } = await ask(app, 'POST', '/wiki_en/_search', { ...body, size: 100 });
    assert.equal(status, 200, shown);
    const whole = (json.hits!.hits as unknown as { _id: string }[]).map(({ _id }) => _id);
    const pages = await scrolled(app, body, parameters);
    assert.deepEqual(pages.flat(), whole, JSON.stringify(sort));
    assert.equal(pages[0]!.length, 4);
  }
  const opened = await ask(app, 'POST', '/wiki_en/_pit?keep_alive=1m');
  const { id } = opened.json as unknown as { id: string };
  let after: unknown[] | undefined;
  const found: string[] = [];
  for (;;) {
    const sort = [{ year: 'desc' }];
    const { json, text: shown } = await ask(app, 'POST', '/_search', {
      query: text,
      sort,
      size: 6,
      pit: { id, keep_alive: '1m' },
      search_after: after,
    });
    assert.equal((json as unknown as { pit_id: string }).pit_id, id, shown);
    const hits = json.hits!.hits as unknown as { _id: string; sort: unknown[] }[];
    if (hits.length === 0) break;
    found.push(...hits.map(({ _id }) => _id));
    after = hits.at(-1)!.sort;
  }
  assert.deepEqual(found, (await scrolled(app, { query: text, sort: [{ year: 'desc' }], size: 9 })).flat());
  assert.deepEqual((await ask(app, 'DELETE', '/_pit', { id })).json, { succeeded: true, num_freed: 1 });
});

test('a scroll that cannot be continued is refused', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const first = await ask(app, 'POST', '/wiki_en/_search?scroll=1m', { size: 1 });
  const id = (first.json as unknown as { _scroll_id: string })._scroll_id;
  const other = elasticsearch(t, await articleIndex(t, ARTICLES.slice(1)));
  for (const [served, path, body, status, reason] of [
    [other, '/_search/scroll', { scroll_id: id }, 404, /the index \[wiki_en\] has changed since the first search/],
    [app, '/_search/scroll', { scroll_id: `${id.slice(0, 40)}` }, 400, /Cannot parse the id/],
    [app, '/_search/scroll', {}, 400, /scrollId is missing/],
    [app, '/wiki_en/_search?scroll=1m', { from: 1 }, 400, /\[from\] is not allowed in a scroll/],
    [app, '/wiki_en/_search?scroll=1m', { size: 0 }, 400, /\[size\] cannot be \[0\]/],
    [app, '/wiki_en/_search?scroll=soon', {}, 400, /as a time value/],
    [app, '/wiki_en/_pit', undefined, 400, /\[keep_alive\] must be given/],
    [app, '/_search', { pit: { id: 'x' } }, 400, /Cannot parse the id/],
  ] as const) {
    const reply = await ask(served, 'POST', path, body);
    assert.equal(reply.status, status, reply.text);
    assert.match(String(reply.json.error!.reason), reason);
  }
});
