import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Metric } from '../../../src/engine/metric.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { FakeTextEncoder } from '../../indexer/fake-text-encoder.ts';
import {
  type Article,
  articleIndex,
  ask,
  elasticsearch,
  type Json,
  vectorIndex,
  withoutWords,
} from './elasticsearch-server.ts';

const skip = withoutWords;
const ARTICLES: readonly Article[] = Array.from({ length: 50 }, (_, i) => ({
  id: `p${i}`,
  title: `t${i}`,
  text: `passage ${i} ${i % 3 === 0 ? 'river' : 'hill'} ${i % 7 === 0 ? 'river danube' : ''}`,
  year: 1950 + i,
}));
const COLUMNS = [{ name: 'year', type: 'number' }] as const;

interface Scored {
  readonly _id: string;
  readonly _score: number;
}
const hitsOf = (json: Json): readonly Scored[] => json.hits!.hits as unknown as readonly Scored[];

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return Array.from(a, (value, i) => value * b[i]!).reduce((sum, value) => sum + value, 0);
}

/** Elasticsearch's score of two vectors. */
function scoreOf(metric: Metric, a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (metric === 'l2') return 1 / (1 + dot(a, a) + dot(b, b) - 2 * dot(a, b));
  const raw = dot(a, b);
  if (metric === 'cosine') return (1 + raw / Math.sqrt(dot(a, a) * dot(b, b))) / 2;
  return raw < 0 ? 1 / (1 - raw) : raw + 1;
}

for (const metric of ['cosine', 'l2', 'inner-product'] as const) {
  test(`${metric}: knn finds the nearest passages with Elasticsearch's scores, filtered and with a least similarity`, {
    skip,
  }, async (t) => {
    const { retriever, vectors } = await vectorIndex(t, ARTICLES, { metric, columns: COLUMNS });
    const app = elasticsearch(t, retriever);
    const random = seededRandom(3);
    for (let round = 0; round < 20; round++) {
      const query_vector = Array.from({ length: 8 }, () => Math.fround(random() * 2 - 1));
      const k = 1 + Math.floor(random() * 12);
      const [filter, passes]: [object | undefined, (i: number) => boolean] = [
        [undefined, () => true],
        [{ range: { year: { gte: 1960, lt: 1990 } } }, (i: number) => i >= 10 && i < 40],
        [{ term: { text: 'river' } }, (i: number) => i % 3 === 0 || i % 7 === 0],
        [
          [{ range: { year: { lt: 1970 } } }, { bool: { must_not: { term: { text: 'hill' } } } }],
          (i: number) => i < 20 && i % 3 === 0,
        ],
      ][round % 4] as [object | undefined, (i: number) => boolean];
      const knn = { field: 'vector', query_vector, k, num_candidates: 50, filter };
      const expected = ARTICLES.flatMap(({ id }, i) =>
        passes(i) ? [{ id, score: scoreOf(metric, query_vector, vectors[i]!) }] : [],
      ).sort((a, b) => b.score - a.score);
      const { json, text } = await ask(app, 'POST', '/wiki_en/_search', { knn, size: 50 });
      assert.equal(json.error, undefined, text);
      const found = hitsOf(json);
      assert.deepEqual(
        found.map(({ _id }) => _id),
        expected.slice(0, k).map(({ id }) => id),
      );
      for (const [i, { _score }] of found.entries()) assert.ok(Math.abs(_score - expected[i]!.score) < 1e-6);
      assert.deepEqual(json.hits!.total, { value: found.length, relation: 'eq' });
      const clause = await ask(app, 'POST', '/wiki_en/_search', { query: { bool: { must: [{ knn }] } }, size: 50 });
      assert.deepEqual(hitsOf(clause.json), found, 'the query of this name is the same');
    }
  });
}

test('beside a query, scores are added, and totals count passages of either', { skip }, async (t) => {
  const { retriever, vectors } = await vectorIndex(t, ARTICLES, { metric: 'cosine', columns: COLUMNS });
  const app = elasticsearch(t, retriever);
  const search = async (body: object): Promise<Json> =>
    (await ask(app, 'POST', '/wiki_en/_search', { size: 50, ...body })).json;
  const query = { match: { text: 'river danube' } };
  const knn = { field: 'vector', query_vector: [...vectors[4]!], k: 5, num_candidates: 10, boost: 3 };
  const [words, near, both] = [await search({ query }), await search({ knn }), await search({ query, knn })];
  const sum = new Map(hitsOf(words).map(({ _id, _score }) => [_id, _score]));
  for (const { _id, _score } of hitsOf(near)) sum.set(_id, (sum.get(_id) ?? 0) + _score);
  assert.equal(hitsOf(near)[0]!._score, 3);
  assert.equal(both.hits!.total!.value, sum.size);
  for (const { _id, _score } of hitsOf(both)) assert.ok(Math.abs(_score - sum.get(_id)!) < 1e-5, _id);
  const two = await search({ knn: [knn, { ...knn, boost: 1, query_vector: [...vectors[9]!] }] });
  assert.ok(hitsOf(two).length > 5 && hitsOf(two).length <= 10);
  const similar = await search({ knn: { ...knn, similarity: 0.999 } });
  assert.deepEqual(
    hitsOf(similar).map(({ _id }) => _id),
    ['p4'],
  );
  const sorted = await search({ knn, sort: [{ year: 'desc' }] });
  assert.deepEqual(
    hitsOf(sorted).map(({ _id }) => _id),
    hitsOf(near)
      .map(({ _id }) => _id)
      .sort((a, b) => Number(b.slice(1)) - Number(a.slice(1))),
  );
  assert.equal((await search({ knn: { ...knn, k: undefined }, size: 3 })).hits!.total!.value, 3, 'k is size');
});

test('several indexes have the k nearest of all together, and the filter of an address holds', { skip }, async (t) => {
  const encoder = new FakeTextEncoder();
  const first = await vectorIndex(t, ARTICLES.slice(0, 30), {
    name: 'one',
    metric: 'cosine',
    columns: COLUMNS,
    encoder,
  });
  const second = await vectorIndex(t, ARTICLES.slice(30), { name: 'two', metric: 'cosine', columns: COLUMNS, encoder });
  const whole = await vectorIndex(t, ARTICLES, { metric: 'cosine', columns: COLUMNS, encoder });
  const retrievers = [first.retriever, second.retriever];
  const targets = retrievers.map(({ info }) => ({ name: info.index, folder: info.index }));
  const holder = IndexRegistry.opening(targets, async (name) => retrievers.find(({ info }) => info.index === name)!);
  await holder.open();
  const knn = { field: 'vector', query_vector: [...whole.vectors[33]!], k: 7, num_candidates: 10 };
  const expected = hitsOf((await ask(elasticsearch(t, whole.retriever), 'POST', '/_search', { knn })).json);
  const found = hitsOf((await ask(elasticsearch(t, holder), 'POST', '/_search', { knn })).json);
  assert.deepEqual(
    found.map(({ _id, _score }) => [_id, _score]),
    expected.map(({ _id, _score }) => [_id, _score]),
  );
  const filter = { column: 'year', op: '<', value: 1960 } as const;
  const limited = hitsOf((await ask(elasticsearch(t, whole.retriever, { filter }), 'POST', '/_search', { knn })).json);
  assert.equal(limited.length, 7);
  assert.ok(limited.every(({ _id }) => Number(_id.slice(1)) < 10));
});

test('a wrong knn is refused', { skip }, async (t) => {
  const { retriever } = await vectorIndex(t, ARTICLES, { metric: 'cosine', columns: COLUMNS });
  const app = elasticsearch(t, retriever);
  const right = { field: 'vector', query_vector: [1, 0, 0, 0, 0, 0, 0, 0], k: 2, num_candidates: 5 };
  const cases: readonly (readonly [knn: unknown, reason: RegExp])[] = [
    [{ ...right, query_vector: [1, 2] }, /different number of dimensions \[2\] than the document vectors \[8\]/],
    [{ ...right, query_vector: right.query_vector.map(() => 0) }, /zero magnitude/],
    [{ ...right, query_vector: [1, 0, 0, 0, 0, 0, 0, 1e39] }, /out of the range of a float/],
    [{ ...right, query_vector: 'abc' }, /\[query_vector\] must be an array/],
    [{ ...right, query_vector: [null] }, /\[query_vector\] must be a number/],
    [{ ...right, field: 'text' }, /only supported on \[dense_vector\]/],
    [{ ...right, field: undefined }, /Required \[field\]/],
    [{ ...right, query_vector: undefined }, /must be provided/],
    [{ ...right, query_vector: undefined, query_vector_builder: {} }, /\[query_vector_builder\] is not supported/],
    [{ ...right, k: 0 }, /\[k\] must be greater than 0/],
    [{ ...right, k: 10_001 }, /\[k\] cannot exceed \[10000\]/],
    [{ ...right, num_candidates: 1 }, /\[num_candidates\] cannot be less than \[k\]/],
    [{ ...right, num_candidates: 10_001 }, /\[num_candidates\] cannot exceed \[10000\]/],
    [{ ...right, filter: { foo: {} } }, /unknown query \[foo\]/],
    [{ ...right, inner_hits: {} }, /\[knn\] query does not support \[inner_hits\]/],
    [3, /\[knn\] malformed/],
  ];
  for (const [knn, reason] of cases) {
    const { status, json } = await ask(app, 'POST', '/wiki_en/_search', { knn });
    assert.equal(status, 400, JSON.stringify(knn));
    assert.match(String(json.error!.root_cause![0]!.reason), reason);
  }
  const query = { knn: { ...right, field: 'nothing' } };
  assert.deepEqual(hitsOf((await ask(app, 'POST', '/wiki_en/_search', { query })).json), []);
  const words = elasticsearch(t, await articleIndex(t, ARTICLES));
  assert.deepEqual(hitsOf((await ask(words, 'POST', '/wiki_en/_search', { knn: right })).json), [], 'no such field');
  const mapping = (await ask(app, 'GET', '/wiki_en/_mapping')).json.wiki_en!.mappings!.properties!.vector;
  assert.deepEqual(mapping, { type: 'dense_vector', dims: 8, index: true, similarity: 'cosine' });
});
