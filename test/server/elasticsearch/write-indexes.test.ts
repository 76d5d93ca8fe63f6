import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ask, withoutWords } from './elasticsearch-server.ts';
import { idsOf, MANUAL, ndjson, succeeded, writableServer } from './writable-server.ts';

const skip = withoutWords;

test('an index has the mapping and the settings that it was made with', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const properties = {
    title: { type: 'text', analyzer: 'english' },
    text: { type: 'text', analyzer: 'english' },
    source: { type: 'keyword' },
    url: { type: 'keyword', index: false },
    meta: { properties: { date: { type: 'date' }, year: { type: 'integer' } } },
    rank: { type: 'double' },
    open: { type: 'boolean' },
  };
  const settings = { index: { number_of_shards: 2, number_of_replicas: '0' }, 'index.refresh_interval': '-1' };
  succeeded(await ask(app, 'PUT', '/ix', { settings, mappings: { properties } }));
  const { json } = await ask(app, 'GET', '/ix');
  assert.deepEqual(json.ix!.mappings, { dynamic: 'false', properties });
  const { uuid, creation_date: created, ...rest } = json.ix!.settings!.index as unknown as Record<string, string>;
  assert.match(uuid!, /^[\w-]{22}$/);
  assert.ok(Math.abs(Number(created) - Date.now()) < 600_000);
  assert.deepEqual(rest, {
    number_of_shards: '2',
    number_of_replicas: '0',
    refresh_interval: '-1',
    provided_name: 'ix',
  });
  assert.deepEqual((await ask(app, 'GET', '/ix/_mapping')).json.ix!.mappings!.properties, properties);
  assert.equal((await ask(app, 'GET', '/ix/_settings')).json.ix!.settings!.index!.number_of_shards, '2');
  const document = {
    text: 'Bridges',
    source: ['a', 'b'],
    meta: { date: '1883-05-24', year: 1883 },
    rank: 0.5,
    open: true,
  };
  const { json: written } = succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', document));
  assert.deepEqual(written._shards, { total: 1, successful: 1, failed: 0 });
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'bridge' } }), ['1']);
  const found = async (filter: string): Promise<number> => {
    const { json: reply } = succeeded(
      await ask(app, 'POST', '/v1/search?index=ix', { queries: ['bridge'], mode: 'bm25', filter }),
    );
    return (reply.results![0]!.hits as unknown as object[]).length;
  };
  assert.equal(await found("meta.date < 1900-01-01 and source = 'b' and rank < 1 and open = true"), 1);
  assert.equal(await found('meta.year > 1883'), 0);
  for (const wrong of [
    { source: 1 },
    { meta: { date: 'yesterday' } },
    { meta: { year: 1883.5 } },
    { rank: 'high' },
    { open: 'yes' },
    { text: 5 },
  ]) {
    const { status, json: refused } = await ask(app, 'PUT', '/ix/_doc/2', wrong);
    assert.deepEqual([status, refused.error!.type], [400, 'document_parsing_exception'], JSON.stringify(wrong));
  }
});

test('text fields have any name, and a query for a field that is only stored is refused', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const text = { type: 'text', analyzer: 'english' };
  const properties = {
    title: { type: 'keyword' },
    txt: text,
    'Größe/x': text,
    meta: { properties: { abstract: text, note: { type: 'text', index: false } } },
    embedding: { type: 'dense_vector', dims: 2, index: false },
  };
  const mappings = { dynamic: true, dynamic_templates: [{ strings: { mapping: { type: 'keyword' } } }], properties };
  succeeded(await ask(app, 'PUT', '/ix', { ...MANUAL, mappings }));
  succeeded(await ask(app, 'PUT', '/ix/_mapping', { properties: { txt: text } }));
  // An index without `title` as text takes its own fields again.
  succeeded(await ask(app, 'PUT', '/ix/_mapping', { dynamic: true, properties: { title: properties.title } }));
  for (const [change, name] of [
    [{ properties: { txt: { type: 'text' } } }, 'txt'],
    [{ properties: { constructor: { type: 'keyword' } } }, 'constructor'],
    [{ properties: { text: { type: 'text' } } }, 'text'],
    [{ dynamic: 'strict' }, 'dynamic'],
  ] as const) {
    const { status, json } = await ask(app, 'PUT', '/ix/_mapping', change);
    assert.equal(status, 400, JSON.stringify(change));
    assert.ok(String(json.error!.reason).includes(`[${name}] cannot be`), JSON.stringify(json));
  }
  const documents = [
    { title: 'Bridge', txt: 'A tower\nin Paris', meta: { abstract: ['bridges', 'roads'], note: 'n', source: 's' } },
    { txt: 'bridges', 'Größe/x': 'tower', embedding: [0.5, 1], other: { deep: [{ tag: 'x' }] } },
    { title: null, txt: null },
  ];
  for (const [i, document] of documents.entries()) succeeded(await ask(app, 'PUT', `/ix/_doc/${i + 1}`, document));
  succeeded(await ask(app, 'POST', '/ix/_refresh'));
  assert.deepEqual(await idsOf(app, 'ix', { match: { txt: 'bridge' } }), ['2']);
  assert.deepEqual(await idsOf(app, 'ix', { match: { 'meta.abstract': 'road bridge' } }), ['1']);
  assert.deepEqual(await idsOf(app, 'ix', { match: { 'Größe/x': 'towers' } }), ['2']);
  assert.deepEqual((await idsOf(app, 'ix', { multi_match: { query: 'tower' } })).toSorted(), ['1', '2']);
  assert.deepEqual(await idsOf(app, 'ix', { multi_match: { query: 'tower', fields: ['tx*'] } }), ['1']);
  assert.deepEqual(await idsOf(app, 'ix', { term: { title: 'Bridge' } }), ['1']);
  assert.deepEqual(await idsOf(app, 'ix', { match: { absent: 'bridge' } }), []);
  const { json } = succeeded(
    await ask(app, 'POST', '/ix/_search', {
      query: { match: { txt: 'tower' } },
      highlight: { fields: { txt: { number_of_fragments: 0 } } },
    }),
  );
  const [hit] = json.hits!.hits as unknown as { _source: object; highlight: object }[];
  assert.deepEqual(hit!._source, documents[0]);
  assert.deepEqual(hit!.highlight, { txt: ['A <em>tower</em>\nin Paris'] });
  // Other routes return the words that are searched, and the first line of a text is not its title.
  const { json: native } = succeeded(
    await ask(app, 'POST', '/v1/search?index=ix', { queries: ['paris'], mode: 'bm25' }),
  );
  const [found] = native.results![0]!.hits as unknown as { title: string; text: string }[];
  assert.deepEqual([found!.title, found!.text], ['Bridge', '"Bridge"\nA tower\nin Paris\nbridges\nroads']);
  for (const [name, query] of [
    ['other', { exists: { field: 'other' } }],
    ['other.deep.tag', { term: { 'other.deep.tag': 'x' } }],
    ['meta.source.keyword', { bool: { filter: { terms: { 'meta.source.keyword': ['s'] } } } }],
    ['meta.note', { multi_match: { query: 'n', fields: ['txt', 'meta.note'] } }],
    ['meta.n*', { multi_match: { query: 'n', fields: ['meta.n*'] } }],
    ['embedding', { range: { embedding: { gt: 0 } } }],
    ['embedding', { knn: { field: 'embedding', query_vector: [1, 0], k: 1 } }],
  ] as const) {
    const refused = await ask(app, 'POST', '/ix/_search', { query });
    assert.equal(refused.status, 400, JSON.stringify(query));
    const [{ type, reason }] = refused.json.error!.root_cause as unknown as [{ type: string; reason: string }];
    assert.equal(type, 'query_shard_exception');
    assert.ok(reason.includes(`field [${name}] is stored and not searched`), reason);
  }
});

test('an index has the similarity of its settings', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const similarity = { flat: { type: 'BM25', k1: '0.5', b: 0 } };
  const mappings = { properties: { body: { type: 'text', similarity: 'flat' } } };
  succeeded(await ask(app, 'PUT', '/flat', { settings: { similarity, refresh_interval: '-1' }, mappings }));
  const byDefault = { 'index.similarity.default': { type: 'BM25', b: 0, k1: 0.5 }, 'index.refresh_interval': '-1' };
  const plain = { properties: { body: { type: 'text' } } };
  succeeded(await ask(app, 'PUT', '/default', { settings: byDefault, mappings: plain }));
  succeeded(await ask(app, 'PUT', '/usual', { ...MANUAL, mappings: plain }));
  const scores: number[][] = [];
  for (const index of ['flat', 'default', 'usual']) {
    succeeded(await ask(app, 'PUT', `/${index}/_doc/1`, { body: 'tower tower and many other words' }));
    succeeded(await ask(app, 'PUT', `/${index}/_doc/2?refresh=true`, { body: 'a' }));
    const { json } = succeeded(await ask(app, 'POST', `/${index}/_search`, { query: { match: { body: 'tower' } } }));
    scores.push((json.hits!.hits as unknown as { _score: number }[]).map(({ _score }) => _score));
  }
  const idf = Math.log(1 + 1.5 / 1.5);
  assert.ok(Math.abs(scores[0]![0]! - (idf * 1.5 * 2) / 2.5) < 1e-6, `${scores[0]}`);
  assert.deepEqual(scores[0], scores[1]);
  assert.notDeepEqual(scores[0], scores[2]);
  for (const wrong of [
    { type: 'boolean' },
    { type: 'BM25', k1: -1 },
    { type: 'BM25', b: 2 },
    { type: 'BM25', k2: 1 },
    'DFR',
  ]) {
    const { status, json } = await ask(app, 'PUT', '/wrong', { settings: { similarity: { s: wrong } } });
    assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception'], JSON.stringify(wrong));
  }
});

test('an index of contents has one field', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const mappings = { properties: { contents: { type: 'text', analyzer: 'whitespace' } } };
  succeeded(await ask(app, 'PUT', '/ix', { ...MANUAL, mappings }));
  succeeded(await ask(app, 'PUT', '/ix/_doc/1', { contents: 'A Bridge' }));
  succeeded(await ask(app, 'PUT', '/ix/_doc/2?refresh=true', { title: 'Bridge' }));
  assert.deepEqual(await idsOf(app, 'ix', { match: { contents: 'Bridge' } }), ['1']);
  assert.deepEqual(await idsOf(app, 'ix', { match: { contents: 'bridge' } }), []);
});

test('a document whose text no search would find is refused', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await ask(app, 'PUT', '/texts', MANUAL));
  const mappings = { properties: { contents: { type: 'text' } } };
  succeeded(await ask(app, 'PUT', '/contents', { ...MANUAL, mappings }));
  for (const [index, document, reason] of [
    ['texts', { contents: '"A"\nb' }, /text in \[contents\], but the index has the text field \[text\]/],
    ['contents', { title: 'A', text: 'b' }, /text in \[text\], but the index has the text field \[contents\]/],
  ] as const) {
    const { status, json } = await ask(app, 'PUT', `/${index}/_doc/1`, document);
    assert.deepEqual([status, json.error!.type], [400, 'document_parsing_exception']);
    assert.match(String(json.error!.reason), reason);
  }
});

test('a mapping that this server does not have is refused and named', { skip }, async (t) => {
  const { app } = await writableServer(t);
  for (const [mappings, reason] of [
    [{ properties: { v: { type: 'geo_point' } } }, /The type \[geo_point\] of the field \[v\] is not supported/],
    [{ properties: { body: { type: 'text', similarity: 'LM' } } }, /Unknown Similarity type \[LM\] for field \[body\]/],
    [{ properties: { body: { type: 'text', similarity: { k1: 1 } } } }, /Unknown Similarity type \[START_OBJECT\]/],
    [
      { properties: { a: { properties: { b: { type: 'text' } } }, 'a.b': { type: 'keyword' } } },
      /The field \[a\.b\] is defined twice/,
    ],
    [{ properties: { body: { type: 'text', norms: false } } }, /\[norms\] of the field \[body\] must be true/],
    [{ properties: { body: { type: 'text', index: 'no' } } }, /\[index\] of the field \[body\] must be a boolean/],
    [
      { properties: { title: { type: 'text', index: false }, text: { type: 'text', index: false } } },
      /At least one field must be searched/,
    ],
    [{ properties: { v: {} } }, /No type specified for field \[v\]/],
    [{ properties: { v: 1 } }, /Expected map for property \[fields\] on field \[v\]/],
    [{ properties: [] }, /\[properties\] must be an object/],
    [{ properties: { text: { type: 'keyword' } } }, /field \[text\] must have the type \[text\]/],
    [
      { properties: { text: { type: 'text', analyzer: 'ik_max_word' } } },
      /analyzer \[ik_max_word\] has not been configured/,
    ],
    [
      { properties: { text: { type: 'text', fields: { raw: { type: 'keyword' } } } } },
      /unknown parameter \[fields\] on mapper \[text\] of type \[text\]/,
    ],
    [
      { properties: { k: { type: 'keyword', ignore_above: 256 } } },
      /unknown parameter \[ignore_above\] on mapper \[k\]/,
    ],
    [{ properties: { _x: { type: 'keyword' } } }, /cannot have the name \[_x\]/],
    [
      { properties: { title: { type: 'text', analyzer: 'english' }, text: { type: 'text' } } },
      /All text fields must have the same \[analyzer\]/,
    ],
    [
      { properties: { text: { type: 'text', search_analyzer: 'english' } } },
      /\[search_analyzer\] of the field \[text\]/,
    ],
    [{ dynamic: 'runtime' }, /\[dynamic\] can be \[true\], \[false\] or \[strict\], but is \[runtime\]/],
    [{ _source: { enabled: false } }, /Root mapping definition has unsupported parameters: {2}\[_source\]/],
  ] as const) {
    const { status, json } = await ask(app, 'PUT', '/ix', { mappings });
    assert.deepEqual([status, json.error!.type], [400, 'mapper_parsing_exception'], JSON.stringify(mappings));
    assert.match(String(json.error!.reason), reason);
  }
  assert.equal((await ask(app, 'HEAD', '/ix')).status, 404);
});

test('settings, members and names that this server does not have are refused', { skip }, async (t) => {
  const { app, folder } = await writableServer(t);
  for (const [body, type] of [
    [{ settings: { analysis: { analyzer: {} }, codec: 'best_compression' } }, 'illegal_argument_exception'],
    [{ settings: { number_of_shards: 0 } }, 'illegal_argument_exception'],
    [{ settings: { refresh_interval: 'soon' } }, 'illegal_argument_exception'],
    [{ settings: { refresh_interval: '99d' } }, 'illegal_argument_exception'],
    [{ aliases: { a: {} } }, 'illegal_argument_exception'],
    [{ foo: {} }, 'parse_exception'],
    [{ settings: [] }, 'parsing_exception'],
    ['{', 'x_content_e_o_f_exception'],
  ] as const) {
    const { status, json } = await ask(app, 'PUT', '/ix', body);
    assert.deepEqual([status, json.error!.type], [400, type], JSON.stringify(body));
  }
  for (const name of [
    'Ix',
    '_ix',
    '-ix',
    '+ix',
    '..',
    '.ix',
    'a/b',
    '../ix',
    'a b',
    'a,b',
    'a*',
    'a?',
    'a:b',
    'ü',
    'x'.repeat(65),
  ]) {
    const { status, json } = await ask(app, 'PUT', `/${encodeURIComponent(name)}`);
    assert.deepEqual([status, json.error!.type], [400, 'invalid_index_name_exception'], name);
  }
  assert.equal((await ask(app, 'GET', '/_cat/indices')).text, '');
  const after = await writableServer(t, { folder: join(folder, '..', 'other') });
  assert.equal(after.holder.slots.length, 0);
});

test('an index that exists is not made again, whoever has its name', { skip }, async (t) => {
  const first = await writableServer(t);
  succeeded(await ask(first.app, 'PUT', '/ix', MANUAL));
  const again = await ask(first.app, 'PUT', '/ix');
  assert.deepEqual([again.status, again.json.error!.type], [400, 'resource_already_exists_exception']);
  const { uuid } = (await ask(first.app, 'GET', '/ix')).json.ix!.settings!.index as unknown as { uuid: string };
  assert.equal(again.json.error!.reason, `index [ix/${uuid}] already exists`);
  const both = await Promise.all(['a', 'a'].map((name) => ask(first.app, 'PUT', `/${name}`)));
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 400]);
  await first.stop();

  const made = readdirSync(join(first.folder, 'ix')).find((name) => name.startsWith('index-'))!;
  const served = { name: 'read', folder: join(first.folder, 'ix', made) };
  const { app } = await writableServer(t, { served: [served], groups: new Map([['both', ['read']]]) });
  for (const name of ['read', 'both']) {
    assert.equal((await ask(app, 'PUT', `/${name}`)).json.error!.type, 'resource_already_exists_exception');
  }
  const { json } = await ask(app, 'POST', '/_bulk', ndjson({ index: { _index: 'read' } }, { text: 'a' }));
  const { error, status } = json.items![0]!.index as unknown as {
    error: { type: string; reason: string };
    status: number;
  };
  assert.deepEqual([status, error.type], [403, 'cluster_block_exception']);
  assert.match(error.reason, /it was not made over HTTP/);
  assert.equal((await ask(app, 'DELETE', '/read')).status, 403);
  assert.equal((await ask(app, 'PUT', '/read/_settings', { refresh_interval: '1s' })).status, 403);
  assert.equal((await ask(app, 'PUT', '/none/_settings', { refresh_interval: '1s' })).status, 404);
});

test('settings can change, and a mapping can be sent again', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const mappings = { properties: { text: { type: 'text', analyzer: 'english' }, source: { type: 'keyword' } } };
  succeeded(await ask(app, 'PUT', '/ix', { ...MANUAL, mappings }));
  assert.deepEqual((await ask(app, 'PUT', '/ix/_mapping', mappings)).json, { acknowledged: true });
  for (const properties of [{ other: { type: 'keyword' } }, { source: { type: 'long' } }]) {
    const { status, json } = await ask(app, 'PUT', '/ix/_mapping', { properties });
    assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception']);
  }
  succeeded(await ask(app, 'PUT', '/ix/_doc/1', { text: 'a bridge' }));
  assert.equal((await ask(app, 'PUT', '/ix/_settings', { number_of_shards: 2 })).status, 400);
  succeeded(await ask(app, 'PUT', '/ix/_settings', { index: { refresh_interval: '10ms', number_of_replicas: 3 } }));
  while ((await idsOf(app, 'ix', { match: { text: 'bridge' } })).length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { index } = (await ask(app, 'GET', '/ix/_settings')).json.ix!.settings!;
  assert.deepEqual([index!.refresh_interval, index!.number_of_replicas], ['10ms', '3']);
});

test('a server that starts again has its indexes, and finds what was stored but not refreshed', { skip }, async (t) => {
  const first = await writableServer(t, { inChild: true });
  succeeded(await ask(first.app, 'PUT', '/kept', MANUAL));
  succeeded(await ask(first.app, 'PUT', '/gone', MANUAL));
  succeeded(await ask(first.app, 'PUT', '/kept/_doc/1?refresh=true', { text: 'one' }));
  succeeded(await ask(first.app, 'PUT', '/kept/_doc/2', { text: 'two' }));
  succeeded(await ask(first.app, 'DELETE', '/gone'));
  const before = (await ask(first.app, 'GET', '/kept')).text;
  await first.stop();
  const { app, failures } = await writableServer(t, { folder: first.folder, inChild: true });
  assert.equal((await ask(app, 'GET', '/kept')).text, before);
  assert.equal((await ask(app, 'HEAD', '/gone')).status, 404);
  assert.equal((await ask(app, 'GET', '/kept/_doc/2')).json._seq_no, 1);
  while ((await idsOf(app, 'kept', { match_all: {} })).length < 2)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const { json } = succeeded(await ask(app, 'PUT', '/kept/_doc/1', { text: 'three' }));
  assert.deepEqual([json._version, json._seq_no], [2, 2]);
  assert.deepEqual(failures, []);
});

test('a server without an index is ready', { skip }, async (t) => {
  const { app } = await writableServer(t);
  assert.deepEqual((await ask(app, 'GET', '/readyz')).json, { status: 'ready', indexes: [] });
  assert.equal((await ask(app, 'GET', '/health')).status, 200);
  assert.equal((await ask(app, 'POST', '/retrieve', { queries: ['a'] })).status, 404);
  assert.equal((await ask(app, 'POST', '/_search', {})).json.hits!.total!.value, 0);
});

test('numbers that are mapped as integers have no fraction in fields and sort values, others do', {
  skip,
}, async (t) => {
  const { app } = await writableServer(t);
  const properties = {
    ...Object.fromEntries(['long', 'integer', 'short', 'byte'].map((type) => [type, { type }])),
    year: { type: 'long' },
    rank: { type: 'double' },
  };
  succeeded(await ask(app, 'PUT', '/ix', { ...MANUAL, mappings: { properties } }));
  const numbers = { long: 3, integer: -4, short: 5, byte: 6, rank: 3 };
  succeeded(await ask(app, 'PUT', '/ix/_doc/1', { text: 'A bridge', year: [12_000_000, 7], ...numbers }));
  succeeded(await ask(app, 'PUT', '/ix/_doc/2?refresh=true', { text: 'A river' }));
  const sort = ['long', 'integer', 'short', 'byte', 'year', 'rank'];
  const body = { sort, fields: sort, _source: false };
  const { text, json } = succeeded(await ask(app, 'POST', '/ix/_search', body));
  assert.match(
    text,
    /"fields":\{"long":\[3\],"integer":\[-4\],"short":\[5\],"byte":\[6\],"year":\[12000000,7\],"rank":\[3\.0\]\}/,
  );
  assert.match(text, /"sort":\[3,-4,5,6,7,3\.0\]/);
  // A document without a value has the largest long, or infinity.
  assert.match(text, /"sort":\[(?:9223372036854775807,){5}"Infinity"\]/);
  const [first, second] = json.hits!.hits as unknown as readonly { readonly sort: readonly unknown[] }[];
  for (const [after, found] of [
    [first!.sort, 1],
    [second!.sort, 0],
  ] as const) {
    const page = succeeded(await ask(app, 'POST', '/ix/_search', { ...body, search_after: after }));
    assert.equal((page.json.hits!.hits as unknown as object[]).length, found);
  }
  const lines = ndjson({}, { sort: ['year'], _source: false });
  const many = await ask(app, 'POST', '/ix/_msearch', lines, { 'content-type': 'application/x-ndjson' });
  assert.match(many.text, /"sort":\[7\]/);
});

test('an index that lacks a column of a view is not made, and no document makes it', { skip }, async (t) => {
  const filter = { column: 'source', op: '=', value: 'wiki' } as const;
  const views = [{ name: 'train', filter }];
  const { app, folder, holder } = await writableServer(t, { views });
  const source = { type: 'keyword' };
  const refusals = [
    await ask(app, 'PUT', '/ix', MANUAL),
    await ask(app, 'PUT', '/ix', { ...MANUAL, mappings: { properties: { source: { type: 'long' } } } }),
    await ask(app, 'PUT', '/ix/_doc/1', { text: 'A bridge', source: 'wiki' }),
  ];
  for (const { status, json } of refusals) {
    assert.deepEqual([status, json.error!.type], [400, 'illegal_argument_exception']);
    const { reason } = json.error as unknown as { reason: string };
    assert.match(reason, /^The index ix was not made\. View train: .*source.*Map the columns of the views/);
  }
  succeeded(await ask(app, 'PUT', '/good', { ...MANUAL, mappings: { properties: { source } } }));
  const body = ndjson(
    { index: { _index: 'ix', _id: '1' } },
    { text: 'A bridge', source: 'wiki' },
    { index: { _index: 'good', _id: '1' } },
    { text: 'A bridge', source: 'wiki' },
    { index: { _index: 'good', _id: '2' } },
    { text: 'A bridge', source: 'news' },
    { index: { _index: 'good', _id: '3' } },
    { text: 'A bridge' },
  );
  const { json } = await ask(app, 'POST', '/_bulk', body, { 'content-type': 'application/x-ndjson' });
  const items = json.items as unknown as { index: { status: number; error?: { type: string } } }[];
  assert.deepEqual(
    items.map(({ index }) => [index.status, index.error?.type]),
    [
      [400, 'illegal_argument_exception'],
      [201, undefined],
      [201, undefined],
      [201, undefined],
    ],
  );
  succeeded(await ask(app, 'POST', '/_refresh'));
  assert.deepEqual(await idsOf(app, 'good', { match: { text: 'bridge' } }), ['1', '2', '3']);
  const inView = await ask(app, 'POST', '/views/train/good/_search', { query: { match: { text: 'bridge' } } });
  assert.deepEqual(
    (succeeded(inView).json.hits!.hits as unknown as { _id: string }[]).map(({ _id }) => _id),
    ['1'],
  );
  // Nothing is left of the index that was not made.
  assert.deepEqual(
    holder.slots.map(({ name }) => name),
    ['good'],
  );
  assert.deepEqual(
    readdirSync(folder).filter((name) => !name.startsWith('.lock')),
    ['good'],
  );
});

test('an index outside of the indexes of a view is made without its columns, and is not found in the view', {
  skip,
}, async (t) => {
  const views = [{ name: 'train', filter: { column: 'source', op: 'exists' } as const, indexes: ['good'] }];
  const { app } = await writableServer(t, { views });
  succeeded(await ask(app, 'PUT', '/ix/_doc/1?refresh=true', { text: 'A bridge' }));
  assert.deepEqual(await idsOf(app, 'ix', { match_all: {} }), ['1']);
  assert.equal((await ask(app, 'POST', '/views/train/ix/_search', {})).status, 404);
  const { json } = succeeded(await ask(app, 'POST', '/views/train/_search', {}));
  assert.deepEqual(json.hits!.total, { value: 0, relation: 'eq' });
});
