import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Column } from '../../../src/engine/filter/column.ts';
import { runs } from '../../helpers/runs.ts';
import { type Article, articleIndex, ask, elasticsearch, withoutWords } from './elasticsearch-server.ts';

const SEED = 20_261_122;
const NAMES = [
  'match',
  'multi_match',
  'term',
  'terms',
  'ids',
  'exists',
  'range',
  'knn',
  'bool',
  'dis_max',
  'constant_score',
  'match_all',
  'foo',
];
const PARAMETERS = [
  'query',
  'fields',
  'must',
  'should',
  'filter',
  'must_not',
  'queries',
  'values',
  'field',
  'boost',
  'text',
  'title',
  '_id',
  'minimum_should_match',
  'operator',
  'type',
  'tie_breaker',
  'gte',
  'lt',
  'format',
  'query_vector',
  'k',
  'year',
  'meta.date',
  'archived',
  'fragment_size',
  'number_of_fragments',
  'pre_tags',
  'order',
  'missing',
  '__proto__',
  'constructor',
];
const BODY = [
  'query',
  'size',
  'from',
  '_source',
  'track_total_hits',
  'min_score',
  'sort',
  'aggs',
  'highlight',
  'knn',
  'fields',
  'search_after',
  'track_scores',
  'timeout',
  '__proto__',
];

/** Values that look like those of queries, nested in any order. */
const value = fc.letrec((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom<unknown>(
      'river',
      'title',
      'year',
      'title.keyword',
      'vector',
      'now-1d/d',
      '2020-01',
      'desc',
      '_doc',
      '5ms',
      'text',
      '*',
      'ti*^2',
      'most_fields',
      '1<-50%',
      '-1',
      '',
      0,
      1,
      -1,
      2.5,
      1e300,
      true,
      null,
    ),
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.integer(),
  ),
  clause: fc.dictionary(fc.constantFrom(...NAMES), tie('value'), { maxKeys: 2 }),
  parameters: fc.dictionary(fc.constantFrom(...PARAMETERS), tie('value'), { maxKeys: 4 }),
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('clause'),
    tie('parameters'),
  ),
})).value;
const body = fc.oneof(
  fc.dictionary(fc.constantFrom(...BODY), value, { maxKeys: 3 }).map((search) => JSON.stringify(search)),
  fc.dictionary(fc.constantFrom(...NAMES), value, { minKeys: 1, maxKeys: 1 }).map((query) => JSON.stringify({ query })),
  fc.json(),
  fc.string({ unit: 'binary' }),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
);
const ARTICLES: readonly Article[] = [
  { id: '1', title: 'River', text: 'a river', year: [1, 2.5], archived: true },
  { id: 2, title: 'Vienna', text: 'text', meta: { a: [1, { b: 2 }], date: '2020-01-31' } },
];
const COLUMNS: readonly Column[] = [
  { name: 'title', type: 'string' },
  { name: 'year', type: 'number' },
  { name: 'archived', type: 'boolean' },
  { name: 'meta.date', type: 'date' },
];

/** Bodies. */
const COUNT = runs(700, 3_000);

test('no body makes a route of Elasticsearch fail: every reply is a 200, or a 4xx in its format', {
  skip: withoutWords,
}, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES, { columns: COLUMNS }));
  const url = fc.constantFrom(
    '/wiki_en/_search',
    '/_search',
    '/wiki_en/_count',
    '/_msearch',
    '/wiki_en/_msearch',
    '/_mget',
    '/wiki_en/_mget',
    '/none/_search',
  );
  const tried = { answered: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(url, body, async (path, payload) => {
      const { status, json, text } = await ask(app, 'POST', path, payload);
      if (status === 200) {
        tried.answered++;
        assert.doesNotMatch(text, /"status":5/);
        return;
      }
      tried.refused++;
      assert.ok(status >= 400 && status < 500, `${status} ${text}`);
      assert.equal(json.status, status);
      assert.ok(String(json.error!.type).length > 0 && String(json.error!.reason).length > 0, text);
    }),
    { numRuns: COUNT, seed: SEED },
  );
  assert.ok(tried.answered > COUNT / 30 && tried.refused > COUNT / 6, JSON.stringify(tried));
});

test('parameters of the URL are read or refused', { skip: withoutWords }, async (t) => {
  const app = elasticsearch(t, await articleIndex(t, ARTICLES));
  const name = fc.constantFrom(
    'size',
    'from',
    '_source',
    '_source_includes',
    'track_total_hits',
    'rest_total_hits_as_int',
    'sort',
    'timeout',
    'track_scores',
    'pretty',
    'q',
    'index',
  );
  const parameter = fc.tuple(
    name,
    fc.oneof(fc.constantFrom('1', 'true', 'false', '', '-1', 'a,b'), fc.string({ maxLength: 5 })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(parameter, { maxLength: 3 }), async (parameters) => {
      const { status, text } = await ask(app, 'GET', `/wiki_en/_search?${new URLSearchParams(parameters)}`);
      assert.ok(status === 200 || (status >= 400 && status < 500), `${status} ${text}`);
    }),
    { numRuns: runs(100, 300), seed: SEED },
  );
});
