import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeTextEncoder } from '../indexer/fake-text-encoder.ts';
import { build, postTo } from './build.ts';
import { ask, elasticsearch, vectorIndex, withoutWords } from './elasticsearch/elasticsearch-server.ts';

const HUGE = 3e38;
const ARTICLES = Array.from({ length: 12 }, (_, i) => ({
  id: `p${i}`,
  title: `t${i}`,
  text: i === 5 ? 'far away' : `river ${i}`,
  year: 2000,
}));

/** Texts with «huge» and «far» have vectors whose product does not fit float32. */
function opened(t: Parameters<typeof vectorIndex>[0]) {
  const firstValue = (text: string) => (text.includes('huge') ? HUGE : text.includes('far') ? 100 : undefined);
  return vectorIndex(t, ARTICLES, { metric: 'inner-product', encoder: new FakeTextEncoder({ firstValue }) });
}

interface Result {
  readonly ok: boolean;
  readonly error?: { readonly code: string };
  readonly hits?: readonly unknown[];
  readonly passages?: readonly unknown[];
}

test('a query with scores beyond float32 fails alone: the others of its request and those beside it are answered', {
  skip: withoutWords,
}, async (t) => {
  const { retriever } = await opened(t);
  const app = build(t, retriever);
  const results = async (url: string, body: object): Promise<readonly Result[]> => {
    const { status, json, text } = await postTo(app, url, body);
    assert.equal(status, 200, text);
    return (json as { results: readonly Result[] }).results;
  };
  for (const mode of ['dense', 'hybrid']) {
    const search = (...queries: string[]) => results('/v1/search', { queries, k: 3, mode });
    const [river, hill, danube] = await search('river', 'hill', 'danube');
    assert.equal(river!.hits!.length, 3);
    const [together, [beside]] = await Promise.all([search('river', 'huge', 'hill'), search('danube')]);
    assert.deepEqual([together[0]!.hits, together[2]!.hits, beside!.hits], [river!.hits, hill!.hits, danube!.hits]);
    assert.deepEqual([together[1]!.ok, together[1]!.error!.code], [false, 'SCORE_OVERFLOW'], mode);
  }
  assert.equal((await postTo(app, '/retrieve', { queries: ['huge'], topk: 3 })).status, 422);
  const asked = ['river', 'huge', 'hill'].map((query) => ({ query, rows: [1, 5] }));
  const scored = await results('/v1/score', { queries: asked, modes: ['dense'] });
  const [alone] = await results('/v1/score', { queries: [asked[2]], modes: ['dense'] });
  assert.deepEqual(scored[2], alone);
  assert.deepEqual([scored[0]!.ok, scored[1]!.error?.code], [true, 'SCORE_OVERFLOW']);
});

test('a vector with scores beyond float32 fails alone among the searches of a request, and beside others', {
  skip: withoutWords,
}, async (t) => {
  const { retriever, vectors } = await opened(t);
  const app = elasticsearch(t, retriever);
  const knn = (query_vector: readonly number[]) => ({
    knn: { field: 'vector', query_vector, k: 2, num_candidates: 9 },
  });
  const near = knn([...vectors[1]!]);
  const huge = knn([HUGE, ...new Array<number>(7).fill(0)]);
  const expected = (await ask(app, 'POST', '/_search', near)).json.hits;
  const lines = [near, huge, near].map((body) => `{}\n${JSON.stringify(body)}\n`).join('');
  const [several, refused, beside] = await Promise.all([
    ask(app, 'POST', '/_msearch', lines, { 'content-type': 'application/x-ndjson' }),
    ask(app, 'POST', '/_search', huge),
    ask(app, 'POST', '/_search', near),
  ]);
  const responses = several.json.responses as unknown as readonly { status: number; hits?: unknown }[];
  assert.deepEqual([responses[0]!.hits, responses[2]!.hits, beside.json.hits], [expected, expected, expected]);
  assert.deepEqual([responses[1]!.status, refused.status], [400, 400], several.text);
});

test('no finite query vector and no boost makes the interface of Elasticsearch fail: scores are numbers, or the answer is 400', {
  skip: withoutWords,
}, async (t) => {
  for (const metric of ['inner-product', 'cosine', 'l2'] as const) {
    const { retriever } = await vectorIndex(t, ARTICLES, { metric });
    const app = elasticsearch(t, retriever);
    for (const value of [HUGE, -HUGE, 3.4028235e38, 3.41e38, 1e20, 1e-45]) {
      for (const query_vector of [new Array<number>(8).fill(value), [value, -value, 0, 0, 0, 0, 0, value]]) {
        for (const boost of [1, HUGE, 1e-45]) {
          const knn = { field: 'vector', query_vector, k: 2, num_candidates: 9, boost };
          const { status, json, text } = await ask(app, 'POST', '/_search', { knn });
          assert.ok(status === 200 || status === 400, `${metric} ${value} ${boost}: ${status} ${text}`);
          if (status !== 200) continue;
          const { hits } = json.hits as unknown as { hits: readonly { _score: unknown }[] };
          for (const { _score } of hits) assert.ok(Number.isFinite(_score), `${metric} ${value} ${boost}: ${text}`);
        }
      }
    }
  }
});
