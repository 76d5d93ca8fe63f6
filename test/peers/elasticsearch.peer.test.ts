import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import {
  type Article,
  articleIndex,
  ask,
  elasticsearch,
  vectorIndex,
  withoutWords,
} from '../server/elasticsearch/elasticsearch-server.ts';
import {
  comparableReply,
  RANDOM_COLUMNS,
  RANDOM_MAPPING,
  type RecordedReply,
  randomArticles,
  randomBody,
} from '../server/elasticsearch/random-bodies.ts';
import { assertAlike, startElasticsearch, withoutElasticsearch } from './elasticsearch-node.ts';

const skip = withoutElasticsearch() || withoutWords;
const INDEX = 'wiki_en';
const BODIES = 1_000;
const RECORDED = join(packageRoot, 'test', 'fixtures', 'elasticsearch-replies.jsonl');

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function answerOf(url: string, body: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

/** A node of Elasticsearch with the articles, in one segment, so that equal scores are ranked in their order. */
async function nodeWith(t: TestContext, articles: readonly Article[], more: object = {}): Promise<string> {
  const node = await startElasticsearch(t);
  const settings = { number_of_shards: 1, number_of_replicas: 0, refresh_interval: -1 };
  const created = await fetch(`${node}/${INDEX}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ settings, mappings: { dynamic: false, properties: { ...RANDOM_MAPPING, ...more } } }),
  });
  assert.equal(created.status, 200, await created.text());
  const lines = articles.flatMap((article) => [{ index: { _id: article.id } }, article]);
  const bulk = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  assert.match((await answerOf(`${node}/${INDEX}/_bulk`, bulk)).text, /"errors":false/);
  for (const route of ['_forcemerge?max_num_segments=1', '_refresh']) {
    assert.equal((await answerOf(`${node}/${INDEX}/${route}`, '')).status, 200);
  }
  return node;
}

test(`${BODIES} random bodies have the rankings, score bits and totals of Elasticsearch 8.17.1, and so have the recorded ones`, {
  skip,
}, async (t) => {
  const articles = randomArticles();
  const node = await nodeWith(t, articles);
  const app = elasticsearch(t, await articleIndex(t, articles, { name: INDEX, columns: RANDOM_COLUMNS }));
  const random = seededRandom(Number(process.env.TRAWL_SEED ?? 1));
  let hits = 0;
  for (let i = 0; i < BODIES; i++) {
    const body = randomBody(random);
    const expected = await answerOf(`${node}/${INDEX}/_search`, body);
    const { status, text } = await ask(app, 'POST', `/${INDEX}/_search`, body);
    assert.deepEqual(
      comparableReply(status, text),
      comparableReply(expected.status, expected.text),
      JSON.stringify(body),
    );
    hits += text.split('"_id"').length - 1;
  }
  assert.ok(hits > 5_000, `${hits} hits`);
  // TRAWL_UPDATE_FIXTURES=1 records the replies again.
  if (process.env.TRAWL_UPDATE_FIXTURES === '1') {
    const bodies = seededRandom(7);
    const lines: string[] = [];
    for (let i = 0; i < 400; i++) {
      const body = { ...randomBody(bodies), size: i % 4 === 0 ? 20 : 3, _source: false };
      const { status, text } = await answerOf(`${node}/${INDEX}/_search`, body);
      lines.push(JSON.stringify({ body, reply: comparableReply(status, text) }));
    }
    writeFileSync(RECORDED, `${lines.join('\n')}\n`);
  }
  for (const line of readFileSync(RECORDED, 'utf8').trim().split('\n')) {
    const { body, reply } = JSON.parse(line) as RecordedReply;
    const { status, text } = await answerOf(`${node}/${INDEX}/_search`, body);
    assert.deepEqual(comparableReply(status, text), reply, JSON.stringify(body));
  }
});

test('errors have the status and the types of Elasticsearch 8.17.1, and the place of an unknown query', {
  skip,
}, async (t) => {
  const articles = randomArticles().slice(0, 5);
  const node = await nodeWith(t, articles);
  const app = elasticsearch(t, await articleIndex(t, articles, { name: INDEX, columns: RANDOM_COLUMNS }));
  const bodies: readonly unknown[] = [
    { query: { foo: {} } },
    '{\n  "query": {\n    "bool": {"must": [{"foo": {}}]}}}',
    { query: { match: { text: { query: 'a', foo: 1 } } } },
    { query: { match: { text: 'a', title: 'b' } } },
    { query: { term: { text: ['a'] } } },
    { query: { bool: { foo: 1 } } },
    { query: {} },
    { size: -1 },
    { from: -1 },
    { from: 9_999, size: 2 },
    { foo: 1 },
    { track_total_hits: -2 },
    { query: { dis_max: { queries: [{ match_all: {} }], tie_breaker: 2 } } },
    { query: { multi_match: { query: 'a', type: 'x' } } },
    { query: { match: { text: { query: 'a', boost: -1 } } } },
    { query: { range: { views: { gte: 'x' } } } },
    { query: { range: { date: { gte: '31.1.2020' } } } },
    { query: { range: { views: { above: 1 } } } },
    { query: { range: { views: 1 } } },
    { query: { range: {} } },
    { query: { term: { views: 'x' } } },
    { query: { term: { archived: 'x' } } },
    { sort: 'unknown' },
    { sort: 'text' },
    { sort: [{ views: { order: 'up' } }] },
    { search_after: [1] },
    { sort: '_doc', search_after: [1, 2] },
    { sort: '_doc', search_after: [1], from: 1 },
    { timeout: '5' },
    { knn: { field: 'vector', query_vector: [1], k: 0, num_candidates: 1 } },
    { knn: { field: 'vector', query_vector: [1], k: 2, num_candidates: 1 } },
    { knn: { field: 'vector', query_vector: [1], k: 2, num_candidates: 10_001 } },
    { knn: { field: 'vector', k: 2, num_candidates: 2 } },
    { knn: { query_vector: [1], k: 2, num_candidates: 2 } },
    { knn: { field: 'unknown', query_vector: [1], k: 2, num_candidates: 2 } },
    { query: { knn: { field: 'unknown', query_vector: [1] } } },
    '{"query":',
    '{"query" 1}',
    '{"size":1,"size":2}',
  ];
  const different: object[] = [];
  for (const body of bodies) {
    const expected = await answerOf(`${node}/${INDEX}/_search`, body);
    const { status, text } = await ask(app, 'POST', `/${INDEX}/_search`, body);
    const [ours, theirs] = [comparableReply(status, text), comparableReply(expected.status, expected.text)];
    if (!isDeepStrictEqual(ours, theirs)) different.push({ body, text, expected: expected.text });
  }
  assert.deepEqual(different, []);
  const missing = await answerOf(`${node}/none/_search`, {});
  const ours = await ask(app, 'POST', '/none/_search', {});
  assert.deepEqual(JSON.parse(ours.text), JSON.parse(missing.text));
});

test('knn finds what Elasticsearch 8.17.1 finds in a flat index, alone, filtered and beside a query', {
  skip,
}, async (t) => {
  const articles = randomArticles().slice(0, 200);
  const { retriever, vectors } = await vectorIndex(t, articles, {
    name: INDEX,
    metric: 'cosine',
    columns: RANDOM_COLUMNS,
  });
  const flat = { type: 'dense_vector', dims: 8, similarity: 'cosine', index_options: { type: 'flat' } };
  const withVectors = articles.map((article, i) => ({ ...article, vector: [...vectors[i]!] }));
  const node = await nodeWith(t, withVectors, { vector: flat });
  const app = elasticsearch(t, retriever);
  const random = seededRandom(Number(process.env.TRAWL_SEED ?? 1));
  const filters = [
    { range: { views: { gte: 1 } } },
    { match: { text: 'river' } },
    { bool: { must_not: { term: { tags: 'orf' } } } },
  ];
  for (let i = 0; i < 200; i++) {
    const vector = Array.from({ length: 8 }, () => Math.fround(random() * 2 - 1));
    const k = 1 + Math.floor(random() * 20);
    const knn = {
      field: 'vector',
      query_vector: vector,
      k,
      num_candidates: 200,
      ...(random() < 0.4 ? { filter: filters[i % 3] } : {}),
      ...(random() < 0.3 ? { similarity: random() - 0.3 } : {}),
      ...(random() < 0.3 ? { boost: 2.5 } : {}),
    };
    const query = { match: { text: 'river danube w1' } };
    const bodies = [
      { knn },
      { knn, query },
      { knn: [knn, { ...knn, query_vector: vector.toReversed() }], query: { match: { title: 'a the' } } },
      { query: { bool: { should: [{ knn }, query] } } },
    ];
    const body = { ...bodies[i % bodies.length], size: 30, _source: false };
    const expected = await answerOf(`${node}/${INDEX}/_search`, body);
    const { status, text } = await ask(app, 'POST', `/${INDEX}/_search`, body);
    assert.equal(status, expected.status, expected.text);
    // Elasticsearch adds the products of two vectors in float32, in an order that depends on the processor.
    assertAlike(text, expected.text, JSON.stringify(body));
  }
});
