import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GoldQuery } from '../../../training/perturbation/request-perturbation.ts';
import {
  articleIndex,
  ask,
  elasticsearch,
  type Json,
  vectorIndex,
  withoutWords,
} from '../../server/elasticsearch/elasticsearch-server.ts';
import { ARTICLES, COLUMNS, evenIsGold, perturbs } from './perturbing-server.ts';

interface EsHit {
  readonly _id: string;
  readonly _score: number;
  readonly sort?: readonly number[];
}

function hitsOf(json: Json): readonly EsHit[] {
  return json.hits!.hits as unknown as readonly EsHit[];
}

test("Elasticsearch's searches lose gold passages over all pages, without claiming an exact total", {
  skip: withoutWords,
}, async (t) => {
  const index = await articleIndex(t, ARTICLES);
  const plain = elasticsearch(t, index);
  const asked: GoldQuery[] = [];
  const app = elasticsearch(t, index, perturbs({ 'drop-gold': 1 }, {}, evenIsGold(asked)));
  const query = { match: { text: 'river bridge' } };
  const whole = await ask(plain, 'POST', '/wiki_en/_search', { query, size: 40 });
  const odd = hitsOf(whole.json).filter(({ _id }) => Number(_id.slice(2)) % 2 === 1);
  const pages: EsHit[] = [];
  for (let from = 0; from < 20; from += 5) {
    const page = await ask(app, 'POST', '/wiki_en/_search', { query, from, size: 5 });
    assert.equal(page.headers['x-trawl-perturbed'], 'drop-gold;0');
    assert.deepEqual(page.json.hits!.total, { value: 40, relation: 'gte' });
    assert.equal(page.json.hits!.max_score, odd[0]!._score);
    pages.push(...hitsOf(page.json));
  }
  assert.deepEqual(pages, odd);
  assert.deepEqual(asked[0], { query: 'river bridge' });
  assert.deepEqual(whole.json.hits!.total, { value: 40, relation: 'eq' });
  const counted = await ask(app, 'POST', '/wiki_en/_search', { query, size: 0 });
  assert.deepEqual(
    [counted.json.hits!.total, counted.headers['x-trawl-perturbed']],
    [{ value: 40, relation: 'eq' }, 'none'],
  );
  // Passages by id and counts are no searches.
  const byId = await ask(app, 'GET', '/wiki_en/_doc/a-2');
  assert.deepEqual([byId.status, byId.headers['x-trawl-perturbed']], [200, undefined]);
});

test("distractors in Elasticsearch's searches keep the order of scores and of sorted values, and stay within a filter", {
  skip: withoutWords,
}, async (t) => {
  const index = await articleIndex(t, ARTICLES, { columns: COLUMNS });
  const app = elasticsearch(t, index, perturbs({ distractors: 1 }, { distractors: 2 }));
  const query = { match: { text: 'bridge' } };
  const scored = hitsOf((await ask(app, 'POST', '/wiki_en/_search', { query, size: 6 })).json);
  assert.ok(scored.every(({ _score }, i) => i === 0 || _score <= scored[i - 1]!._score));
  const sorted = hitsOf(
    (await ask(app, 'POST', '/wiki_en/_search', { query, size: 6, sort: [{ number: 'asc' }] })).json,
  );
  const values = sorted.map(({ sort }) => sort![0]!);
  assert.deepEqual(
    [...values].sort((a, b) => a - b),
    values,
  );
  assert.equal(new Set(sorted.map(({ _id }) => _id)).size, 6);
  assert.ok(sorted.some(({ _id, sort }) => Number(_id.slice(2)) !== sort![0]));
  // Ten passages pass each filter, and the search finds only three of them.
  const words = { match: { text: '1 2 3' } };
  const few = { range: { number: { lt: 10 } } };
  for (const filtered of [
    { bool: { must: [words], filter: [few] } },
    { bool: { must: [{ bool: { must: [words], filter: [few] } }] } },
    { bool: { must: [words], must_not: [{ range: { number: { gte: 10 } } }] } },
  ]) {
    const { json, headers } = await ask(app, 'POST', '/wiki_en/_search', { query: filtered, size: 5 });
    const numbers = hitsOf(json).map(({ _id }) => Number(_id.slice(2)));
    assert.equal(headers['x-trawl-perturbed'], 'distractors;0');
    assert.equal(numbers.length, 5);
    assert.ok(
      numbers.every((number) => number < 10),
      JSON.stringify(filtered),
    );
  }
});

test("distractors in Elasticsearch's searches by vectors stay within the filter of the knn, wherever it stands", {
  skip: withoutWords,
}, async (t) => {
  const { retriever: index, vectors } = await vectorIndex(t, ARTICLES, { metric: 'cosine', columns: COLUMNS });
  const app = elasticsearch(t, index, perturbs({ distractors: 1 }, { distractors: 3 }));
  const range = (from: number, to: number) => ({ range: { number: { gte: from, lt: to } } });
  const knn = (i: number, filter?: object) => {
    const of = { field: 'vector', query_vector: [...vectors[i]!], k: 2, num_candidates: 10 };
    return filter === undefined ? of : { ...of, filter };
  };
  const words = { match: { text: 'bridge' } };
  const low = range(0, 10);
  const bodies: readonly (readonly [object, (number: number) => boolean])[] = [
    [{ knn: knn(3, low) }, (number) => number < 10],
    [{ knn: [knn(3, range(0, 6)), knn(30, [range(30, 40), range(20, 36)])] }, (n) => n < 6 || (n >= 30 && n < 36)],
    [{ query: { knn: knn(3, low) } }, (number) => number < 10],
    [{ query: { bool: { must: [{ knn: knn(3, low) }] } } }, (number) => number < 10],
    [
      { query: { bool: { should: [{ knn: knn(3, low) }, { knn: knn(35, range(33, 40)) }] } } },
      (n) => n < 10 || n >= 33,
    ],
    [{ query: { dis_max: { queries: [{ knn: knn(3, low) }] } } }, (number) => number < 10],
    [{ knn: knn(3, low), query: { bool: { must: [words], filter: [range(5, 12)] } } }, (number) => number < 12],
    [
      {
        query: {
          bool: {
            should: [{ bool: { must: [words], filter: [low] } }, { bool: { must: [words], filter: [range(8, 12)] } }],
          },
        },
      },
      (number) => number < 12,
    ],
    [
      {
        query: {
          bool: {
            should: [{ bool: { must: [words], filter: [low] } }, { bool: { must: [words], filter: [range(2, 20)] } }],
            minimum_should_match: 2,
          },
        },
      },
      (number) => number >= 2 && number < 10,
    ],
  ];
  for (const [body, passes] of bodies) {
    const { json, headers, text } = await ask(app, 'POST', '/wiki_en/_search', { ...body, size: 6 });
    assert.equal(headers['x-trawl-perturbed'], 'distractors;0', text);
    const numbers = hitsOf(json).map(({ _id }) => Number(_id.slice(2)));
    assert.ok(numbers.length > 3 && numbers.every(passes), `${JSON.stringify(body).slice(0, 300)}: ${numbers}`);
  }
  // Without a filter any passage may be one, also beside words that have a filter.
  const free = { knn: knn(3), query: { bool: { must: [words], filter: [low] } } };
  const drawn = hitsOf((await ask(app, 'POST', '/wiki_en/_search', { ...free, size: 20 })).json);
  assert.ok(drawn.some(({ _id }) => Number(_id.slice(2)) >= 10));
});

test('each search of _msearch fails on its own, and a search of several indexes passes once', {
  skip: withoutWords,
}, async (t) => {
  const index = await articleIndex(t, ARTICLES);
  const app = elasticsearch(t, index, perturbs({ fail: 0.5 }, { seed: 4 }));
  const lines = Array.from({ length: 16 }, (_, i) => [
    '{"index":"wiki_en"}',
    JSON.stringify({ query: { match: { text: `bridge ${i}` } }, size: 1 }),
  ]).flat();
  const many = await ask(app, 'POST', '/_msearch', `${lines.join('\n')}\n`, { 'content-type': 'application/x-ndjson' });
  const statuses = (many.json.responses as unknown as { status: number }[]).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)].sort(), [200, 503]);
  assert.equal(many.headers['x-trawl-perturbed'], 'fail');
  const failed = statuses.indexOf(503);
  const alone = await ask(app, 'POST', '/wiki_en/_search', JSON.parse(lines[2 * failed + 1]!));
  const error = (alone.json as unknown as { error?: { type: string } }).error;
  assert.ok(alone.status === 200 || (alone.status === 503 && error!.type === 'es_rejected_execution_exception'));
  const delayed = elasticsearch(t, index, perturbs({ delay: 1, distractors: 1 }));
  const both = await ask(delayed, 'POST', '/wiki_en,wiki_en/_search', { query: { match_all: {} }, size: 2 });
  assert.deepEqual([both.status, both.headers['x-trawl-perturbed']], [200, 'distractors;0, delay']);
});
