import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import type { ServerConfig } from '../../src/server/server-config.ts';
import { FakeReranker, type FakeRerankerOptions } from '../helpers/fake-reranker.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { FakeEncoder, FakeIndex, FakeStore } from '../search/fakes.ts';
import { build, errorOf, postTo } from './build.ts';

const ROWS = 6;
/** The search finds row 5 first; the reranker prefers long passages, and so the lower rows. */
const document = (row: number): string => JSON.stringify({ id: `p${row}`, contents: `p${'x'.repeat(ROWS - row)}` });

function app(t: TestContext, options: FakeRerankerOptions = {}, config: Partial<ServerConfig> = {}) {
  const reranker = new FakeReranker(options);
  const { info } = new FakeRetriever();
  const retriever = new IndexRetriever(
    { ...info, rows: ROWS, reranker: reranker.info },
    {
      dense: {
        encoder: new FakeEncoder([]),
        index: new FakeIndex([], { rows: ROWS, score: (_query, row) => row / 10 }),
      },
      passages: new FakeStore([], { rows: ROWS, document }),
    },
    { reranker, answerCache: new AnswerCache(1_000_000) },
  );
  t.after(() => retriever.close());
  return { app: build(t, retriever, config), reranker };
}

interface Reply {
  readonly results: {
    readonly ok: boolean;
    readonly rerank?: object;
    readonly hits: { id: string; score: number; firstStage?: { rank: number; score: number } }[];
  }[];
  readonly timings: Record<string, number>;
  readonly result: { document: { id: string }; score: number }[][];
  readonly unreranked?: number[];
}

const ids = (reply: unknown): string[] => (reply as Reply).results[0]!.hits.map(({ id }) => id);

test('rerank of /v1/search orders the hits by the reranker; they keep rank and score of the search', async (t) => {
  const { app: server } = app(t);
  const plain = await postTo(server, '/v1/search', { queries: ['0'], k: 2 });
  const found = ids(plain.json);
  assert.equal((plain.json as Reply).results[0]!.rerank, undefined);
  const { status, json, headers } = await postTo(server, '/v1/search', { queries: ['0'], k: 2, rerank: { depth: 3 } });
  assert.equal(status, 200);
  const { hits, rerank } = (json as Reply).results[0]!;
  assert.equal(hits.length, 2);
  assert.deepEqual(rerank, { ok: true, model: 'fake-reranker', passages: 3, truncated: 0 });
  assert.ok(hits[0]!.score > hits[1]!.score);
  assert.deepEqual(
    hits.map(({ firstStage }) => firstStage!.rank >= 1 && firstStage!.rank <= 3),
    [true, true],
  );
  assert.equal(found.length, 2);
  assert.ok('rerankMs' in (json as Reply).timings);
  assert.match(String(headers['server-timing']), /rerank;dur=/);
});

test('true takes the depth of the server, or 50; false leaves the order of the search', async (t) => {
  const { app: byRequest, reranker } = app(t);
  await postTo(byRequest, '/v1/search', { queries: ['0'], k: 1 });
  assert.equal(reranker.calls.length, 0, 'a server without a default depth reranks on request only');
  await postTo(byRequest, '/v1/search', { queries: ['0'], k: 1, rerank: true });
  assert.equal(reranker.calls[0]![0]!.passages.length, ROWS);
  const { app: byDefault, reranker: other } = app(t, {}, { rerank: { depth: 2 } });
  await postTo(byDefault, '/v1/search', { queries: ['0'], k: 1 });
  await postTo(byDefault, '/v1/search', { queries: ['1'], k: 1, rerank: true });
  await postTo(byDefault, '/v1/search', { queries: ['1'], k: 1, rerank: { depth: 4 } });
  await postTo(byDefault, '/v1/search', { queries: ['0'], k: 1, rerank: false });
  assert.deepEqual(
    other.calls.map(([list]) => list!.passages.length),
    [2, 2, 4],
  );
});

test('the dialects rerank by the default of the server', async (t) => {
  const { app: server, reranker } = app(t, {}, { rerank: { depth: 4 } });
  const { json } = await postTo(server, '/retrieve', { queries: ['0', '1'], topk: 2, return_scores: true });
  const { result } = json as Reply;
  assert.deepEqual(
    result.map((list) => list.map(({ score }) => score)),
    result.map((list) => list.map(({ score }) => score).sort((a, b) => b - a)),
  );
  assert.deepEqual(
    reranker.calls[0]!.map(({ passages }) => passages.length),
    [4, 4],
  );
});

test('a failure of the reranker fails the query, unless server or request allow it; the reply then marks it', async (t) => {
  const fail = (query: string) => (query === '1' ? new TrawlError('RERANK_FAILED', 'a private detail') : undefined);
  const message = "The server's reranker did not answer, or gave an unusable answer. Send the request again.";
  const error = { code: 'RERANK_FAILED', message };
  const { app: strict } = app(t, { fail }, { rerank: { depth: 3 } });
  const native = (await postTo(strict, '/v1/search', { queries: ['0', '1'], k: 2 })).json as Reply;
  assert.deepEqual([native.results[0]!.ok, native.results[1]], [true, { ok: false, error }]);
  assert.equal((await postTo(strict, '/retrieve', { queries: ['0', '1'] })).status, 503);
  const asked = await postTo(strict, '/v1/search', { queries: ['1'], k: 2, rerank: { allowFailure: true } });
  const [marked] = (asked.json as Reply).results;
  assert.deepEqual([marked!.ok, marked!.rerank], [true, { ok: false, error }]);
  assert.equal(marked!.hits[0]!.firstStage, undefined);
  const { app: lenient } = app(t, { fail }, { rerank: { depth: 3, allowFailure: true } });
  const { json, status } = await postTo(lenient, '/retrieve', { queries: ['0', '1'], topk: 2 });
  assert.deepEqual([status, (json as Reply).unreranked, (json as Reply).result[1]!.length], [200, [1], 2]);
});

test('excluded passages are left out after reranking, and a list that lost too many is filled from further down', async (t) => {
  const { app: server } = app(t, { score: (_query, passage) => passage.length });
  const everything = ids((await postTo(server, '/v1/search', { queries: ['0'], k: ROWS, rerank: true })).json);
  const exclude = everything.slice(0, 3);
  const { json } = await postTo(server, '/v1/search', { queries: ['0'], k: 3, exclude, rerank: { depth: 1 } });
  assert.deepEqual(ids(json), everything.slice(3));
});

test('requests that cannot be reranked are refused with the reason', async (t) => {
  const { app: server } = app(t, {}, { maxK: 100, maxHits: 200, topk: 1 });
  const refusals: [object, number, string, RegExp][] = [
    [{ rerank: { depth: 101 } }, 422, 'K_TOO_LARGE', /rerank\.depth is 101; the limit of this server is 100/],
    [{ queries: ['0', '1', '2'], rerank: { depth: 80 } }, 422, 'K_TOO_LARGE', /3 queries with 80 passages/],
    [{ rerank: { depth: 0 } }, 422, 'INVALID_REQUEST', /rerank/],
    [{ rerank: { deep: 3 } }, 422, 'INVALID_REQUEST', /deep/],
    [{ rerank: 'maybe' }, 422, 'INVALID_REQUEST', /rerank/],
    [{ rerank: { model: 'other' } }, 501, 'NOT_SUPPORTED', /"other" is not served. Use "fake-reranker"/],
  ];
  for (const [fields, status, code, message] of refusals) {
    const reply = await postTo(server, '/v1/search', { queries: ['0'], ...fields });
    const error = errorOf(reply.json);
    assert.deepEqual([reply.status, error.code], [status, code], JSON.stringify(fields));
    assert.match(error.message, message);
  }
  const { info } = new FakeRetriever();
  const without = new IndexRetriever({ ...info, reranker: null }, { passages: new FakeStore([]) });
  t.after(() => without.close());
  const reply = await postTo(build(t, without), '/v1/search', { queries: ['0'], rerank: true });
  assert.deepEqual([reply.status, errorOf(reply.json).code], [501, 'NOT_SUPPORTED']);
});

test('a request whose pairs have too many tokens is a 422 that says how many', async (t) => {
  const reranker = new FakeReranker();
  const { info } = new FakeRetriever();
  const parts = {
    dense: { encoder: new FakeEncoder([]), index: new FakeIndex([], { rows: ROWS }) },
    passages: new FakeStore([], { rows: ROWS, document }),
  };
  const retriever = new IndexRetriever({ ...info, rows: ROWS, reranker: reranker.info }, parts, {
    reranker,
    maxRerankTokens: 10,
  });
  t.after(() => retriever.close());
  const reply = await postTo(build(t, retriever), '/v1/search', { queries: ['0'], rerank: true });
  assert.deepEqual([reply.status, errorOf(reply.json).code], [422, 'RERANK_TOO_LARGE']);
  assert.match(errorOf(reply.json).message, /6 pairs .*the limit is 10 tokens/);
});

test('a depth that no request could have is refused when the server is configured', (t) => {
  for (const depth of [0, -1, 1.5, 4_000]) {
    assert.throws(
      () => build(t, new FakeRetriever(), { rerank: { depth } }),
      trawlError('CONFIG_INVALID', /--rerank-depth/),
    );
  }
});

test('metrics count lists, pairs and failures of the reranker', async (t) => {
  const fail = (query: string) => (query === '1' ? new TrawlError('RERANK_FAILED', 'x') : undefined);
  const { app: server } = app(t, { fail }, { rerank: { depth: 3 } });
  await postTo(server, '/v1/search', { queries: ['0', '1'], k: 2 });
  const { payload } = await server.inject('/metrics');
  for (const line of [
    'trawl_reranked_lists_total{index="fake-sample"} 1',
    'trawl_rerank_failures_total{index="fake-sample"} 1',
    'trawl_rerank_pairs_total{index="fake-sample"} 3',
    'trawl_rerank_truncated_pairs_total{index="fake-sample"} 0',
    'trawl_queue_queries{index="fake-sample",stage="rerank"} 0',
    'trawl_queue_expected_wait_seconds{index="fake-sample",stage="rerank"} 0.007',
    'trawl_stage_seconds_count{stage="rerank"} 1',
  ]) {
    assert.ok(payload.includes(line), `${line} is missing`);
  }
});

test('/v1/indexes names the reranker', async (t) => {
  const { app: server } = app(t);
  const { indexes } = (await server.inject('/v1/indexes')).json() as { indexes: { reranker: unknown }[] };
  assert.deepEqual(indexes[0]!.reranker, { name: 'fake-reranker', maxTokens: 512 });
});
