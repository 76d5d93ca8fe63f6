import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Column } from '../../../src/engine/filter/column.ts';
import { type Article, articleIndex, ask, elasticsearch, type Json, withoutWords } from './elasticsearch-server.ts';

const skip = withoutWords;
const COLUMNS: readonly Column[] = [
  { name: 'source', type: 'string' },
  { name: 'year', type: 'number' },
  { name: 'meta.date', type: 'date' },
  { name: 'archived', type: 'boolean' },
  { name: 'title', type: 'string' },
];
const ARTICLES: readonly Article[] = [
  {
    id: 'a',
    title: 'Danube',
    text: 'a river',
    source: 'orf',
    year: 1990,
    archived: true,
    meta: { date: '2020-01-31' },
  },
  { id: 'b', title: 'Vienna', text: 'a city on a river', source: 'apa', year: [1989, 2001], archived: false },
  { id: 'c', text: 'no title', source: 'Orf', year: -0.5, meta: { date: ['2020-02-01T10:00:00Z', '2021-06-01'] } },
  { id: 'd', title: 'Linz', text: 'no columns' },
];

const idsOf = (json: Json): string[] => [...(json.hits!.hits as unknown as { _id: string }[])].map(({ _id }) => _id);

test('term, terms, range and exists find passages by their columns', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  const cases: readonly (readonly [query: object, ids: string])[] = [
    [{ term: { source: 'orf' } }, 'a'],
    [{ term: { 'source.keyword': { value: 'Orf' } } }, 'c'],
    [{ term: { source: 'none' } }, ''],
    [{ match: { source: 'apa' } }, 'b'],
    [{ match: { source: 'orf apa' } }, ''],
    [{ multi_match: { query: 'Orf', fields: ['source', 'text'] } }, 'c'],
    [{ terms: { source: ['orf', 'apa'] } }, 'a b'],
    [{ terms: { source: [] } }, ''],
    [{ term: { year: 1989 } }, 'b'],
    [{ term: { year: '1990.0' } }, 'a'],
    [{ terms: { year: [1990, -0.5] } }, 'a c'],
    [{ term: { archived: false } }, 'b'],
    [{ term: { archived: 'true' } }, 'a'],
    [{ term: { 'title.keyword': 'Danube' } }, 'a'],
    [{ term: { title: 'danube' } }, 'a'],
    [{ range: { year: { gte: 1990 } } }, 'a b'],
    [{ range: { year: { gt: 1990, lt: 2001 } } }, ''],
    [{ range: { year: { gt: 1989, lte: 2001 } } }, 'a b'],
    [{ range: { year: {} } }, 'a b c'],
    [{ range: { year: { gte: null, lt: 0 } } }, 'c'],
    [{ range: { source: { gte: 'b' } } }, 'a'],
    [{ range: { source: { lt: 'b', boost: 2 } } }, 'b c'],
    [{ range: { archived: { gt: false } } }, 'a'],
    [{ range: { archived: { lte: true } } }, 'a b'],
    [{ range: { 'meta.date': { gte: '2020-01-31', lte: '2020-01-31' } } }, 'a'],
    [{ range: { 'meta.date': { gt: '2020-01' } } }, 'a c'],
    [{ range: { 'meta.date': { lt: '2020-02' } } }, 'a'],
    [{ range: { 'meta.date': { gte: 1577836800000, lt: '1580515200000' } } }, 'a'],
    [{ term: { 'meta.date': 1580428800000 } }, 'a'],
    [{ range: { 'meta.date': { gte: '2020||/y', lte: '2020||/y' } } }, 'a c'],
    [{ range: { 'meta.date': { gte: 'now-1000y', lte: 'now' } } }, 'a c'],
    [{ range: { 'meta.date': { gt: 'now' } } }, ''],
    [{ range: { 'meta.date': { gte: 1577836800000, lt: 1580515200000, format: 'epoch_millis' } } }, 'a'],
    [
      { range: { 'meta.date': { gte: '2021-06-01', format: 'yyyy-MM-dd', time_zone: 'UTC', relation: 'WITHIN' } } },
      'c',
    ],
    [{ term: { 'meta.date': '2020-02-01' } }, 'c'],
    [{ terms: { 'meta.date': ['2020-01-31', '2021-06-01T00:00:00Z'] } }, 'a c'],
    [{ range: { other: { gte: 1 } } }, ''],
    [{ exists: { field: 'year' } }, 'a b c'],
    [{ exists: { field: 'meta.date' } }, 'a c'],
    [{ exists: { field: 'title' } }, 'a b d'],
    [{ exists: { field: 'text' } }, 'a b c d'],
    [{ bool: { filter: [{ range: { year: { gt: 0 } } }], must_not: [{ term: { archived: true } }] } }, 'b'],
    [{ bool: { must: { match: { text: 'river' } }, filter: { terms: { source: ['apa', 'Orf'] } } } }, 'b'],
  ];
  for (const [query, ids] of cases) {
    const { status, json, text } = await ask(app, 'POST', '/wiki_en/_search', { query });
    assert.equal(status, 200, text);
    assert.equal(idsOf(json).sort().join(' '), ids, JSON.stringify(query));
    const { json: counted } = await ask(app, 'POST', '/wiki_en/_count', { query });
    assert.equal(counted.count, idsOf(json).length, JSON.stringify(query));
  }
});

test('a value that a column cannot have is an error of the shard, as in Elasticsearch', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  const cases: readonly (readonly [query: object, type: string, reason: RegExp])[] = [
    [{ term: { year: 'many' } }, 'query_shard_exception', /For input string: "many"/],
    [{ term: { year: '1e999' } }, 'query_shard_exception', /For input string/],
    [{ term: { archived: 'yes' } }, 'query_shard_exception', /parse boolean value \[yes\]/],
    [{ range: { year: { gte: 'x' } } }, 'query_shard_exception', /For input string: "x"/],
    [{ range: { 'meta.date': { gte: '31.1.2020' } } }, 'parse_exception', /parse date field \[31\.1\.2020\]/],
    [{ range: { 'meta.date': { gte: '2020', format: 'dd.MM' } } }, 'query_shard_exception', /format \[dd\.MM\]/],
    [
      { range: { 'meta.date': { gte: '2020-01', lt: 1580515200000 } } },
      'parse_exception',
      /\[2020-01\] with format \[epoch_millis\]/,
    ],
    [{ term: { 'meta.date': 'soon' } }, 'parse_exception', /parse date field \[soon\]/],
    [{ range: { text: { gte: 'a' } } }, 'illegal_argument_exception', /\[range\].*text field \[text\]/],
    [{ range: { _id: { gte: 'a' } } }, 'query_shard_exception', /\[_id\] does not support range/],
    [{ range: { year: 3 } }, 'parsing_exception', /\[range\] query does not support \[year\]/],
    [{ range: { year: { above: 3 } } }, 'parsing_exception', /\[range\] query does not support \[above\]/],
    [{ range: { year: { gte: [3] } } }, 'parsing_exception', /\[gte\] must be a string/],
    [{ range: {} }, 'illegal_argument_exception', /field name is null or empty/],
    [{ range: { 'meta.date': { gte: '2020', time_zone: '+01:00' } } }, 'parsing_exception', /\[time_zone\]/],
    [{ range: { year: { gte: 1, relation: 'disjoint' } } }, 'parsing_exception', /\[relation\]/],
  ];
  for (const [query, type, reason] of cases) {
    const { status, json } = await ask(app, 'POST', '/wiki_en/_search', { query });
    const root = json.error!.root_cause![0]!;
    assert.deepEqual([status, root.type], [400, type], JSON.stringify(query));
    assert.match(String(root.reason), reason);
  }
  const without = elasticsearch(t, await articleIndex(t, ARTICLES));
  const title = await ask(without, 'POST', '/wiki_en/_search', { query: { exists: { field: 'title' } } });
  assert.match(String(title.json.error!.reason), /--column title:string/);
});

test('the mapping names columns and words with the types of Elasticsearch', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  const { json } = await ask(app, 'GET', '/wiki_en/_mapping');
  assert.deepEqual(json.wiki_en!.mappings!.properties, {
    source: { type: 'keyword' },
    year: { type: 'double' },
    'meta.date': { type: 'date' },
    archived: { type: 'boolean' },
    title: { type: 'text', analyzer: 'standard', fields: { keyword: { type: 'keyword' } } },
    text: { type: 'text', analyzer: 'standard' },
  });
});

test('fields returns the values of words and columns, with dates in the wanted format', { skip }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  const fields = async (id: string, wanted: unknown): Promise<unknown> => {
    const query = { ids: { values: [id] } };
    const { json, text } = await ask(app, 'POST', '/wiki_en/_search', { query, fields: wanted, _source: false });
    assert.equal(json.error, undefined, text);
    return json.hits!.hits![0]!.fields;
  };
  assert.deepEqual(await fields('a', ['title', 'year', 'archived', 'meta.*']), {
    title: ['Danube'],
    year: [1990],
    archived: [true],
    'meta.date': ['2020-01-31T00:00:00.000Z'],
  });
  assert.deepEqual(await fields('b', ['year', 'nothing', 'title.keyword']), {
    'title.keyword': ['Vienna'],
    year: [1989, 2001],
  });
  assert.deepEqual(await fields('c', [{ field: 'meta.date', format: 'epoch_millis' }]), {
    'meta.date': ['1580551200000', '1622505600000'],
  });
  assert.equal(await fields('d', ['year']), undefined);
  for (const wrong of [[{ field: 'year', format: 'x' }], [{}], [{ field: 'a', include_unmapped: true }], [[1]]]) {
    const { status } = await ask(app, 'POST', '/wiki_en/_search', { fields: wrong });
    assert.equal(status, 400, JSON.stringify(wrong));
  }
});
