import assert from 'node:assert/strict';
import { test } from 'node:test';
import Value from 'typebox/value';
import { DIALECT_PATHS, DIALECTS, NAMEABLE_DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, errorOf, getFrom, postTo } from './build.ts';

test('every example belongs to its dialect and gets a reply that matches the schema', async (t) => {
  for (const { name, method, path, example, onlyIfNamed, request, reply, replyType } of DIALECTS) {
    if (Object.keys(example).length === 0) continue;
    const app = build(t, new FakeRetriever(), { dialects: onlyIfNamed ? [name] : [] });
    const body = name === 'openai-embeddings' ? { ...example, model: 'fake-encoder' } : example;
    const answer = method === 'GET' ? await getFrom(app, path, body) : await postTo(app, path, body);
    assert.equal(answer.status, 200, `${name}: ${answer.text}`);
    assert.ok(Value.Check(reply, replyType === undefined ? answer.json : answer.text), name);
    assert.equal(answer.headers['content-type'], `${replyType ?? 'application/json'}; charset=utf-8`, name);
    const complete = Value.Default(request, structuredClone(body));
    assert.ok(Value.Check(request, complete), name);
  }
});

test('each dialect reports wrong values with the message and status that its clients expect', async (t) => {
  const app = build(t, new FakeRetriever(), { maxK: 100, maxQueries: 3, dialects: ['rllm-legacy'] });
  const cases: readonly [path: string, body: unknown, status: number, code: string, loc?: unknown[]][] = [
    ['/retrieve', {}, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/queries', {}, 422, 'INVALID_REQUEST', ['body', 'queries']],
    ['/queries', '{', 400, 'INVALID_JSON'],
    ['/queries', { queries: 'a' }, 422, 'INVALID_REQUEST', ['body', 'queries']],
    ['/queries', { queries: ['a'], k: 101 }, 422, 'K_TOO_LARGE', ['body', 'k']],
    ['/queries', { queries: ['a', 'b', 'c', 'd'] }, 413, 'TOO_MANY_QUERIES'],
    ['/search', {}, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/search', { query: ['a'] }, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/search', { query: ' \n\t' }, 400, 'EMPTY_QUERY'],
    ['/search', { query: 'a', top_n: -1 }, 422, 'INVALID_REQUEST', ['body', 'top_n']],
    ['/search', { query: 'a', top_n: null }, 422, 'INVALID_REQUEST', ['body', 'top_n']],
    ['/search', '{', 422, 'INVALID_JSON'],
    ['/batch_search', { query: 'a' }, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/batch_search', { query: ['a'], top_n: 101 }, 422, 'K_TOO_LARGE', ['body', 'top_n']],
    ['/access', { urls: 'a' }, 422, 'INVALID_REQUEST', ['body', 'urls']],
    ['/access', { urls: [null] }, 422, 'INVALID_REQUEST', ['body', 'urls', 0]],
    ['/access', { urls: ['a', 'b', 'c', 'd'] }, 413, 'TOO_MANY_QUERIES'],
    ['/retrieve/rerank', { queries: 'a' }, 422, 'INVALID_REQUEST', ['body', 'queries']],
    ['/rerank', {}, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/rerank', { queries: ['a'] }, 422, 'INVALID_REQUEST', ['body', 'documents']],
    ['/rerank', { queries: ['a'], documents: [] }, 422, 'INVALID_REQUEST', ['body', 'documents']],
    ['/rerank', { queries: ['a'], documents: [[{}]] }, 422, 'INVALID_REQUEST', ['body', 'documents', 0, 0]],
    ['/rerank', { query: 'a', documents: [3] }, 422, 'INVALID_REQUEST', ['body', 'documents', 0]],
    ['/rerank', { query: 'a', documents: [{ text: 3 }] }, 422, 'INVALID_REQUEST', ['body', 'documents', 0, 'text']],
    ['/v1/rerank', { query: 'a', documents: ['b'], top_n: -1 }, 422, 'INVALID_REQUEST', ['body', 'top_n']],
    ['/v2/rerank', { documents: ['b'] }, 422, 'INVALID_REQUEST', ['body', 'query']],
    ['/v2/rerank', { query: 'a', documents: ['a', 'b', 'c', 'd'] }, 413, 'TOO_MANY_QUERIES'],
    ['/embed_and_retrieve', { prompts: ['a'] }, 422, 'INVALID_REQUEST', ['body', 'top_k']],
    ['/embed_and_retrieve', { prompts: ['a'], top_k: 'x' }, 422, 'INVALID_REQUEST', ['body', 'top_k']],
  ];
  for (const [path, body, status, code, loc] of cases) {
    const answer = await postTo(app, path, body);
    const name = `${path} ${JSON.stringify(body)}`;
    assert.deepEqual([answer.status, errorOf(answer.json).code], [status, code], name);
    if (loc !== undefined) {
      assert.deepEqual((errorOf(answer.json).detail as { loc: unknown[] }[])[0]?.loc, loc, name);
    }
  }
  const blank = await postTo(app, '/search', { query: ' ' });
  assert.equal(errorOf(blank.json).detail, 'Query content cannot be empty');
});

test('on every path: another method is a 405, another content type a 415, a trailing slash a 307', async (t) => {
  const app = build(t);
  for (const path of DIALECT_PATHS) {
    const url = path.replace(':index', 'wiki_en');
    const put = await app.inject({ method: 'PUT', url });
    const methods = app.hasRoute({ method: 'GET', url }) ? 'GET, HEAD, ' : '';
    assert.deepEqual([put.statusCode, put.headers.allow], [405, `${methods}POST, OPTIONS`], path);
    assert.equal((await postTo(app, url, '{}', { 'content-type': 'text/plain' })).status, 415, path);
    if (path !== '/') assert.equal((await postTo(app, `${url}/`, '{}')).status, 307, path);
  }
});

test('a preferred dialect that is unknown, alone on its path or given twice is refused', (t) => {
  for (const dialects of [['zero'], ['r1-searcher'], ['stepsearch-rerank'], ['']]) {
    assert.throws(() => build(t, new FakeRetriever(), { dialects }), {
      code: 'CONFIG_INVALID',
      message: new RegExp(`Expected one of ${NAMEABLE_DIALECTS.join(', ')}\\.`),
    });
  }
  assert.throws(() => build(t, new FakeRetriever(), { dialects: ['rllm', 'rllm'] }), {
    code: 'CONFIG_INVALID',
    message: /"rllm" is given twice/,
  });
  const alone = DIALECTS.filter(
    (dialect) =>
      !DIALECTS.some((other) => other !== dialect && other.method === dialect.method && other.path === dialect.path),
  ).map(({ name }) => name);
  for (const { name } of DIALECTS) {
    if (name === 'elasticsearch' || !alone.includes(name)) build(t, new FakeRetriever(), { dialects: [name] });
    else assert.throws(() => build(t, new FakeRetriever(), { dialects: [name] }), { code: 'CONFIG_INVALID' }, name);
  }
});

test('on a shared path, one dialect claims every body without keys of others, unless it must be named', () => {
  for (const path of DIALECT_PATHS) {
    const tried = DIALECTS.filter(
      (dialect) => dialect.path === path && dialect.method === 'POST' && !dialect.onlyIfNamed,
    );
    for (const body of [{}, [], null, { topk: 1 }]) {
      const claiming = tried.filter((dialect) => dialect.claims(body, false));
      assert.equal(claiming.length, 1, `${path} ${JSON.stringify(body)}`);
    }
  }
});

test('a preferred search-r1 leaves the other dialects their requests', async (t) => {
  const usual = build(t);
  const named = build(t, new FakeRetriever(), { dialects: ['search-r1'] });
  for (const body of [
    { query: 'a', topk: 1 },
    { query: 'a', top_k: 1 },
    { queries: ['a'], topk: 1, return_scores: true },
    { queries: ['a'], topk_retrieval: 10, topk_rerank: 3 },
    { topk: 1 },
    [],
  ]) {
    const [one, other] = [await postTo(usual, '/retrieve', body), await postTo(named, '/retrieve', body)];
    assert.deepEqual([other.status, other.json], [one.status, one.json], JSON.stringify(body));
  }
});

test('a request for reranking is Search-R1’s whatever dialect of /retrieve is preferred', async (t) => {
  const body = { queries: ['a'], topk_retrieval: 4, topk_rerank: 2 };
  const usual = (await postTo(build(t), '/retrieve', body)).json;
  // StepSearch's own requests have topk_retrieval, which its /retrieve ignores.
  const others = ['search-r1-rerank-text', 'stepsearch'];
  const names = DIALECTS.filter(({ path, name }) => path === '/retrieve' && !others.includes(name));
  for (const { name } of names) {
    const { status, json, text } = await postTo(build(t, new FakeRetriever(), { dialects: [name] }), '/retrieve', body);
    assert.equal(status, 200, text);
    assert.deepEqual(json, usual, name);
  }
});

test('of two preferred dialects the first one gets a request; with all preferred every request has a dialect', async (t) => {
  const single = { query: 'a', top_k: 1 };
  const first = build(t, new FakeRetriever(), { dialects: ['zerosearch', 'rllm'] });
  assert.ok(Array.isArray((await postTo(first, '/retrieve', single)).json));
  const second = build(t, new FakeRetriever(), { dialects: ['rllm', 'zerosearch'] });
  assert.ok('results' in ((await postTo(second, '/retrieve', single)).json as object));
  const all = build(t, new FakeRetriever(), { dialects: NAMEABLE_DIALECTS });
  for (const body of [single, { query: 'a' }, { queries: ['a'] }, { query: 'a', topk: 1 }]) {
    assert.equal((await postTo(all, '/retrieve', body)).status, 200, JSON.stringify(body));
  }
  for (const body of [{}, [], 'null', { topk: 3 }]) {
    assert.equal((await postTo(all, '/retrieve', body)).status, 422, JSON.stringify(body));
  }
});
