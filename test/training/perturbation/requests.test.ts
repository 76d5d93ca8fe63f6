import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseFilterExpression } from '../../../src/engine/filter/filter-expression.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import { DIALECTS } from '../../../src/server/dialects/dispatch.ts';
import { ServerMetrics } from '../../../src/server/metrics/server-metrics.ts';
import { recordLines } from '../../../src/server/recording/record-line.ts';
import type { RecordedRequest, RecordedSearch } from '../../../src/server/recording/recorded-search.ts';
import type { ServerConfig } from '../../../src/server/server-config.ts';
import type { GoldPassages, GoldQuery } from '../../../training/perturbation/request-perturbation.ts';
import { recordedCall } from '../../../training/replay/recorded-call.ts';
import { build, errorOf, eventually, getFrom, type Posted, postTo, serve } from '../../server/build.ts';
import { vectorIndex, withoutWords } from '../../server/elasticsearch/elasticsearch-server.ts';
import { parseRecord } from '../records/parse-record.ts';
import { ARTICLES, COLUMNS, evenIsGold, perturbs, retriever, search } from './perturbing-server.ts';

/** Dialects that embed or rerank the texts of the request. */
const OF_TEXTS = DIALECTS.map(({ name }) => name).filter((name) =>
  /^(tei-embed(-root)?|openai-embeddings|(infinity-|sglang-|tei-)?rerank(-v[12])?|search-r1-reranker)$/.test(name),
);

/** Dialects that search nothing: they read or score what the request names. The example of Elasticsearch is refused. */
const WITHOUT_SEARCH = DIALECTS.map(({ name, client }) => ({
  name,
  searches: client !== undefined || name === 'serper-scholar',
}))
  .filter(({ name, searches }) => (!searches && !OF_TEXTS.includes(name)) || name === 'elasticsearch')
  .map(({ name }) => name);

/** Sends the example of each dialect. */
async function examples(
  t: TestContext,
  config: Partial<ServerConfig>,
): Promise<readonly (readonly [string, Posted])[]> {
  const replies: (readonly [string, Posted])[] = [];
  const shared = build(t, retriever(), config);
  for (const { name, path, method, example, onlyIfNamed } of DIALECTS) {
    const app = onlyIfNamed ? build(t, retriever(), { ...config, dialects: [name] }) : shared;
    const body = name === 'openai-embeddings' ? { ...example, model: 'fake-encoder' } : example;
    replies.push([name, await (method === 'GET' ? getFrom(app, path, body) : postTo(app, path, body))]);
  }
  return replies;
}

test('the reply of every dialect that searches, embeds or reranks names what was done; the others are left alone', async (t) => {
  for (const [name, { status, headers, text }] of await examples(t, perturbs({ distractors: 1, delay: 1 }))) {
    const searches = !WITHOUT_SEARCH.includes(name);
    if (searches) assert.equal(status, 200, `${name}: ${text}`);
    const changed = OF_TEXTS.includes(name) ? /^delay$/ : /^distractors;0(;\d+)*, delay$/;
    const expected = searches ? changed : /^undefined$/;
    assert.match(String(headers['x-trawl-perturbed']), expected, name);
  }
  for (const [name, { headers }] of await examples(t, perturbs({}))) {
    assert.equal(headers['x-trawl-perturbed'], WITHOUT_SEARCH.includes(name) ? undefined : 'none', name);
  }
  for (const [name, { headers }] of await examples(t, {})) assert.equal(headers['x-trawl-perturbed'], undefined, name);
});

test('in every dialect that searches, embeds or reranks a failed request is a 503 with Retry-After and its own code', async (t) => {
  for (const [name, { status, headers, json, text }] of await examples(t, perturbs({ fail: 1 }))) {
    if (WITHOUT_SEARCH.includes(name)) {
      assert.notEqual(status, 503, name);
      continue;
    }
    assert.deepEqual(
      [status, headers['retry-after'], headers['x-trawl-perturbed']],
      [503, '2', 'fail'],
      `${name} ${text}`,
    );
    assert.match(text, /failed this request on purpose/, name);
    // The errors of text-embeddings-inference have no code.
    if (!name.startsWith('tei-')) assert.equal(errorOf(json).code, 'PERTURBED', name);
  }
});

test('equal queries of a request lose the gold passages of the question that each is named for, also in deeper searches', async (t) => {
  const gold: GoldPassages = {
    of:
      ({ questionId }) =>
      (document) =>
        Number(documentFields(document).id!.slice(2)) % 3 === Number(questionId),
  };
  const app = build(t, retriever(), perturbs({ 'drop-gold': 1 }, {}, gold));
  const exclude = Array.from({ length: 300 }, (_, i) => `p-${i}`);
  const { results } = await search(app, {
    queries: ['same', 'same', 'same'],
    k: 6,
    exclude,
    record: { questionId: ['0', '1', '2'] },
  });
  for (const [question, { hits }] of results.entries()) {
    const rests = hits!.map(({ id }) => Number(id.slice(2)) % 3);
    assert.equal(rests.length, 6);
    assert.ok(!rests.includes(question), `${question}: ${rests}`);
    assert.equal(new Set(rests).size, 2, 'the passages of the other questions are there');
  }
});

test('/v1/search says for each query what was done, marks distractors, and claims exactness only of untouched hits', async (t) => {
  const queries = Array.from({ length: 40 }, (_, i) => `query ${i}`);
  const app = build(t, retriever(), perturbs({ 'drop-gold': 0.5, distractors: 0.5 }, {}, evenIsGold()));
  const { results, header } = await search(app, { queries, k: 5 });
  const positions = { 'drop-gold': [] as number[], distractors: [] as number[] };
  for (const [i, { perturbed, certificate, hits }] of results.entries()) {
    const { droppedGold = 0, distractors = 0 } = (perturbed ?? {}) as { droppedGold?: number; distractors?: number };
    assert.equal(certificate.exact, droppedGold + distractors === 0);
    assert.equal(hits!.length, 5);
    assert.equal(hits!.filter(({ distractor }) => distractor).length, distractors);
    if (droppedGold > 0) positions['drop-gold'].push(i);
    if (distractors > 0) positions.distractors.push(i);
  }
  assert.equal(header, `drop-gold;${positions['drop-gold'].join(';')}, distractors;${positions.distractors.join(';')}`);
  assert.ok(positions['drop-gold'].length > 8 && positions['drop-gold'].length < 32);
  const always = build(t, retriever(), perturbs({ distractors: 1 }, { distractors: 3 }));
  const fused = await search(always, { queries: ['a'], k: 6, fuse: 'rrf' });
  assert.ok(fused.hits!.some(({ distractor }) => distractor));
  // Excluded passages and repeated ones cost further searches, which belong to the same request.
  const deep = await search(always, {
    queries: ['a'],
    k: 6,
    exclude: fused.results.map((_, i) => `p-${i}`),
    deduplicate: 'document',
  });
  assert.equal(deep.results[0]!.hits!.length, 6);
});

test('the header names at most 100 positions and the number of the others', async (t) => {
  const app = build(t, retriever(), perturbs({ distractors: 1 }));
  const queries = Array.from({ length: 130 }, (_, i) => `q${i}`);
  const { headers } = await postTo(app, '/retrieve', { queries, topk: 2 });
  const named = String(headers['x-trawl-perturbed']).split(';');
  assert.deepEqual(
    [named.length, named[0], named[1], named[100], named[101]],
    [102, 'distractors', '0', '99', 'and-30-more'],
  );
});

test('the question of a query is found in the body, the headers, the field record and the fields of a dialect', async (t) => {
  const asked: GoldQuery[] = [];
  const app = build(t, retriever(), perturbs({ 'drop-gold': 1 }, {}, evenIsGold(asked)));
  const json = { 'content-type': 'application/json' };
  await search(app, { queries: [{ question: 'Who?', query: 'q' }] });
  await postTo(
    app,
    '/retrieve',
    { queries: ['q'] },
    { ...json, 'x-trawl-question-id': '7', baggage: 'trawl-dataset=nq' },
  );
  await postTo(app, '/retrieve', { queries: ['q', 'r'], record: { question: ['A?', 'B?'], question_id: [1, 2] } });
  await postTo(app, '/get_observation', {
    trajectory_ids: ['t', 'u'],
    actions: ['<answer>x</answer>', '<search>q</search>'],
    extra_fields: [{ question: 'C?' }, { question: 'D?' }],
  });
  await postTo(app, '/retrieve?trawl-question=E', { query: 'q' });
  const known = asked.map(({ question, questionId, dataset, query }) => [question, questionId, dataset, query]);
  assert.deepEqual(known, [
    ['Who?', undefined, undefined, 'q'],
    [undefined, '7', 'nq', 'q'],
    ['A?', '1', undefined, 'q'],
    ['B?', '2', undefined, 'r'],
    ['D?', undefined, undefined, 'q'],
    ['E', undefined, undefined, 'q'],
  ]);
});

test('records say what was done to a query, and such a line is not replayed as a ranking of the index', async (t) => {
  const recorded: [RecordedRequest, RecordedSearch][] = [];
  const record = { record: (...each: [RecordedRequest, RecordedSearch]) => void recorded.push(each) };
  const config = { record, ...perturbs({ 'drop-gold': 0.5, delay: 1 }, {}, evenIsGold()) };
  const app = build(t, retriever(), config);
  await postTo(app, '/retrieve', { queries: Array.from({ length: 20 }, (_, i) => `query ${i}`), topk: 4 });
  const [[request, searched]] = recorded as [[RecordedRequest, RecordedSearch]];
  const lines = [...recordLines('2026-11-23T07:00:00.000Z', request, searched)];
  const uses = lines.map((line) => {
    const parsed = parseRecord(line);
    assert.ok(parsed.ok);
    const { perturbed } = parsed.query;
    assert.equal(perturbed?.delayMs, 1);
    const call = recordedCall(parsed.query, line);
    return [perturbed?.droppedGold !== undefined, call === 'perturbed'];
  });
  assert.ok(uses.every(([dropped, leftOut]) => dropped === leftOut));
  assert.deepEqual([...new Set(uses.map(([dropped]) => dropped))].sort(), [false, true]);
});

test('metrics count queries and requests by what was done, and begin at 0', async (t) => {
  const metrics = new ServerMetrics();
  const counts = async (): Promise<string[]> =>
    [...(await metrics.text()).matchAll(/^trawl_perturbed_total\{perturbation="([\w-]+)"\} (\d+)$/gm)].map(
      ([, ...pair]) => pair.join(' '),
    );
  const gold = { of: () => (document: string) => /[37]$/.test(documentFields(document).id!) };
  const config = { metrics, ...perturbs({ 'drop-gold': 1, distractors: 1, delay: 1 }, { seed: 1 }, gold) };
  const app = build(t, retriever(), config);
  assert.deepEqual(await counts(), ['drop-gold 0', 'distractors 0', 'delay 0', 'fail 0']);
  await postTo(app, '/retrieve', { queries: ['a', 'b', 'c'], topk: 10 });
  assert.deepEqual(await counts(), ['drop-gold 3', 'distractors 3', 'delay 1', 'fail 0']);
  const failing = build(t, retriever(), { metrics, ...perturbs({ fail: 1 }) });
  await postTo(failing, '/retrieve', { queries: ['a', 'b', 'c'] });
  assert.deepEqual(await counts(), ['drop-gold 3', 'distractors 3', 'delay 1', 'fail 1']);
  assert.match(await metrics.text(), /trawl_errors_total\{code="PERTURBED"\} 1/);
});

test('health checks, metrics, lists of indexes and passages by id answer at once, and say that the server perturbs', async (t) => {
  const app = build(t, retriever(), perturbs({ fail: 1, delay: 1 }, { seed: 9, delayMs: 600_000 }));
  const rates = { 'drop-gold': 0, distractors: 0, delay: 1, fail: 1 };
  const facts = { rates, seed: 9, distractors: 1, delayMs: 600_000 };
  for (const path of ['/readyz', '/health', '/healthz', '/v1/indexes']) {
    const { status, json, headers } = await getFrom(app, path, {});
    assert.deepEqual([status, (json as { perturbation?: object }).perturbation], [200, facts], path);
    assert.equal(headers['x-trawl-perturbed'], undefined);
  }
  for (const path of ['/livez', '/metrics', '/v1/passages/p-3', '/v1/models', '/docs/openapi.json']) {
    const response = await app.inject(path);
    assert.deepEqual([response.statusCode, response.headers['x-trawl-perturbed']], [200, undefined], path);
  }
  const plain = build(t, retriever());
  for (const path of ['/readyz', '/health', '/v1/indexes']) {
    assert.ok(!('perturbation' in ((await getFrom(plain, path, {})).json as object)), path);
  }
});

test('a request that is held back ends at its time limit or when its client leaves; others are answered meanwhile', async (t) => {
  const inner = retriever();
  const config = perturbs({ delay: 0.5 }, { seed: 2, delayMs: 600_000 });
  const { url } = await serve(t, inner, config);
  const post = (query: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${url}/retrieve`, {
      method: 'POST',
      ...init,
      headers: { 'content-type': 'application/json', ...init.headers },
      body: JSON.stringify({ queries: [query] }),
    });
  const limited = await Promise.all(
    Array.from({ length: 12 }, (_, i) => post(`query ${i}`, { headers: { 'x-request-timeout-ms': '400' } })),
  );
  const held = limited.flatMap(({ status }, i) => (status === 503 ? [i] : []));
  assert.ok(held.length > 0 && held.length < 12, held.join());
  assert.equal(inner.calls.length, 12 - held.length);
  const [first] = held;
  const { error } = (await limited[first!]!.json()) as { error: { code: string } };
  assert.equal(error.code, 'DEADLINE_EXCEEDED');
  assert.equal(limited[first!]!.headers.get('x-trawl-perturbed'), 'delay');
  // A client that leaves frees its request, and in the end a repeated request is answered.
  for (let tries = 0; ; tries++) {
    assert.ok(tries < 40);
    const controller = new AbortController();
    const before = inner.calls.length;
    const asking = post(`query ${first}`, { signal: controller.signal }).then(
      ({ status }) => status,
      () => 'left',
    );
    const answered = await Promise.race([asking, sleep(300)]);
    if (answered !== undefined) {
      assert.equal(answered, 200);
      break;
    }
    controller.abort();
    assert.equal(await asking, 'left');
    assert.equal(inner.calls.length, before);
    await eventually(() => true);
  }
});

test("rLLM's reply does not call perturbed passages those of an exact search", async (t) => {
  const method = async (config: Partial<ServerConfig>): Promise<unknown> => {
    const { json } = await postTo(build(t, retriever(), config), '/retrieve', { query: 'a', top_k: 3 });
    return (json as { method: string }).method;
  };
  assert.deepEqual(
    [await method(perturbs({ distractors: 1 })), await method(perturbs({ delay: 1 }))],
    ['dense', 'dense_exact'],
  );
});

test('the result of a tool of an assistant says what was done, also where a reply has no header of its own', async (t) => {
  const app = build(t, retriever(), { mcp: { hosts: [], tools: 'trawl' }, ...perturbs({ distractors: 1, delay: 1 }) });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const call = (name: string, args: object) =>
    postTo(app, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }, headers);
  const found = await call('search', { query: 'a', k: 3 });
  const { _meta: meta } = (found.json as { result: { _meta?: object } }).result;
  assert.deepEqual(meta, { 'trawl/perturbed': [{ distractors: 1, delayMs: 1 }], 'trawl/exact': false });
  assert.equal(found.headers['x-trawl-perturbed'], 'distractors;0, delay');
  const fetched = await call('fetch', { id: 'p-3' });
  assert.equal((fetched.json as { result: { _meta?: object } }).result._meta, undefined);
  assert.equal(fetched.headers['x-trawl-perturbed'], undefined);
});

test('the calls of a batch of an assistant are perturbed as each alone', async (t) => {
  const app = build(t, retriever(), {
    mcp: { hosts: [], tools: 'trawl' },
    ...perturbs({ distractors: 0.5, delay: 0.5, fail: 0.3 }, { seed: 2 }),
  });
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const call = (id: number) => {
    const params = { name: 'search', arguments: { query: `query ${id}`, k: 3 } };
    return { jsonrpc: '2.0', id, method: 'tools/call', params };
  };
  interface Answer {
    readonly id: number;
    readonly result: object;
  }
  const ids = Array.from({ length: 12 }, (_, i) => i);
  const batch = (await postTo(app, '/mcp', ids.map(call), headers)).json as Answer[];
  assert.equal(batch.length, ids.length);
  for (const { id, result } of batch) {
    // The next number of a request that failed gets another draw, so each is asked at another server.
    const other = build(t, retriever(), {
      mcp: { hosts: [], tools: 'trawl' },
      ...perturbs({ distractors: 0.5, delay: 0.5, fail: 0.3 }, { seed: 2 }),
    });
    assert.deepEqual((await postTo(other, '/mcp', call(id), headers)).json, { jsonrpc: '2.0', id, result });
  }
  const failed = batch.filter(({ result }) => (result as { isError?: boolean }).isError === true).length;
  assert.ok(failed > 0 && failed < ids.length, `${failed} of ${ids.length} failed`);
});

test('distractors of /v1/search stay within the filters of the request and of the address', {
  skip: withoutWords,
}, async (t) => {
  const { retriever: index } = await vectorIndex(t, ARTICLES, { metric: 'cosine', columns: COLUMNS });
  const least = parseFilterExpression('number >= 4');
  const app = build(t, index, { ...perturbs({ distractors: 1 }, { distractors: 3 }), filter: least });
  for (const mode of ['dense', 'bm25']) {
    for (const question of ['river', 'bridge 7', 'article 30', 'a', 'b']) {
      const body = { queries: [question], k: 5, mode, filter: 'number < 12' };
      const { json, text } = await postTo(app, '/v1/search', body);
      const [result] = (json as { results: readonly { hits: readonly { id: string; distractor?: true }[] }[] }).results;
      const numbers = result!.hits.map(({ id }) => Number(id.slice(2)));
      assert.ok(
        result!.hits.some(({ distractor }) => distractor),
        text,
      );
      assert.ok(
        numbers.every((number) => number >= 4 && number < 12),
        `${mode} ${question}: ${numbers}`,
      );
    }
  }
});
