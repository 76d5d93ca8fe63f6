import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { SearchSource } from '../../../src/search/retriever.ts';
import { ServerRetriever, type ServerRetrieverOptions } from '../../../src/stores/trawl-server/server-retriever.ts';
import { sampleServer } from '../../helpers/sample-server.ts';
import { type ProxyScript, proxyTo } from './proxy.ts';

const served = await sampleServer();
const QUICK = { firstWaitMs: 1, maxWaitMs: 5 } as const;
/** `open` sends three requests. */
const OPENING = 3;

async function opened(t: TestContext, script: ProxyScript, options: ServerRetrieverOptions = {}) {
  const proxy = await proxyTo(t, served.url, script);
  return { proxy, retriever: await ServerRetriever.open(proxy.url, { ...QUICK, ...options }) };
}

const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `bridge number ${i} over a river`);

const rowsHere = (queries: readonly string[]): Promise<unknown> => rowsOf(served.retriever, queries);

async function rowsOf(source: Pick<SearchSource, 'retrieve'>, queries: readonly string[]): Promise<unknown> {
  const { outcomes } = await source.retrieve({ queries, k: 5 });
  return outcomes.map(
    (outcome) =>
      outcome.ok &&
      outcome.hits.map(({ row, score, document }) => ({ row, score, document: JSON.parse(document) as unknown })),
  );
}

test('many queries go in requests of a few, some at the same time, and come back in order', async (t) => {
  const { proxy, retriever } = await opened(t, { delayMs: 20 }, { concurrency: 3 });
  const queries = texts(300);
  assert.deepEqual(await rowsOf(retriever, queries), await rowsHere(queries));
  assert.equal(proxy.requests.length, OPENING + Math.ceil(300 / 64));
  assert.equal(proxy.atOnce(), 3);
});

test('a request that is answered 503 or 429, or whose connection is lost, is sent again after the wait', async (t) => {
  const waits: [string, number][] = [];
  const faults = [
    { status: 503, retryAfter: '0' },
    { status: 429, retryAfter: '2' },
    'reset',
    { status: 503 },
  ] as const;
  const { proxy, retriever } = await opened(
    t,
    { fault: (number) => faults[number - OPENING] },
    { onWait: (reason, ms) => waits.push([reason, ms]) },
  );
  const queries = texts(3);
  assert.deepEqual(await rowsOf(retriever, queries), await rowsHere(queries));
  assert.equal(proxy.requests.length, OPENING + faults.length + 1);
  assert.deepEqual(
    waits.map(([reason]) => /503|429|fetch failed/.exec(reason)?.[0]),
    ['503', '429', 'fetch failed', '503'],
  );
  // What the server asks for, but not longer than the longest wait.
  assert.deepEqual(
    waits.slice(0, 2).map(([, ms]) => ms),
    [0, QUICK.maxWaitMs],
  );
});

test('a server that stays busy is given up after the last try', async (t) => {
  const fault = (number: number) => (number < OPENING ? undefined : { status: 503, retryAfter: '0' });
  const { proxy, retriever } = await opened(t, { fault }, { attempts: 4 });
  await assert.rejects(rowsOf(retriever, texts(2)), /it answered 503, also after 4 tries/);
  assert.equal(proxy.requests.length, OPENING + 4);
});

test('a request over a limit of the server is sent in halves, and a query that is too long fails alone', async () => {
  const small = await served.serve({ maxQueries: 20, maxQueryChars: 100 });
  const retriever = await ServerRetriever.open(small, QUICK);
  const queries = texts(90);
  assert.deepEqual(await rowsOf(retriever, queries), await rowsHere(queries));
  const long = 'word '.repeat(100);
  const { outcomes } = await retriever.retrieve({ queries: [queries[0]!, long, queries[1]!], k: 5 });
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.error.code)),
    ['ok', 'QUERY_TOO_LONG', 'ok'],
  );
  const few = await ServerRetriever.open(await served.serve({ maxK: 3 }), QUICK);
  await assert.rejects(rowsOf(few, queries.slice(0, 1)), { code: 'K_TOO_LARGE' });
});

test('hits of another generation, another index or a perturbed search are refused', async (t) => {
  const { generation } = served.retriever.info;
  const change = (to: (text: string) => string): ProxyScript => ({
    reply: (text, _, number) => (number < OPENING ? text : to(text)),
  });
  const cases: readonly (readonly [(text: string) => string, string])[] = [
    [(text) => text.replaceAll(generation, generation.replace(/^../, 'zz')), 'INDEX_CHANGED'],
    [(text) => text.replace('"name":"', '"name":"other-'), 'INDEX_CHANGED'],
    [
      (text) =>
        text.replace('"results"', '"view":"train","results"').replace('"passages"', '"view":"train","passages"'),
      'INDEX_CHANGED',
    ],
    [(text) => text.replace('"exact":true', '"exact":false'), 'NOT_SUPPORTED'],
    [(text) => text.replace('"hits"', '"perturbed":{"distractors":1},"hits"'), 'NOT_SUPPORTED'],
    [
      (text) => text.replace('"results":[', '"results":[{"ok":false,"error":{"code":"EMPTY_QUERY","message":""}},'),
      'CONFIG_INVALID',
    ],
    [() => '<html></html>', 'CONFIG_INVALID'],
  ];
  for (const [to, code] of cases) {
    const { retriever } = await opened(t, change(to));
    await assert.rejects(rowsOf(retriever, texts(1)), { code }, code);
  }
  const reasons: readonly (readonly [string, RegExp])[] = [
    ['"exact":false,"rescored":11', /does not prove its hits .* approximate index in Milvus/],
    ['"exact":false,"rescored":null', /--perturb or --replay/],
  ];
  for (const [certificate, reason] of reasons) {
    const other = await opened(
      t,
      change((text) => text.replace(/"exact":true,"rescored":(\d+|null)/, certificate)),
    );
    await assert.rejects(rowsOf(other.retriever, texts(1)), { code: 'NOT_SUPPORTED', message: reason });
  }
  const { retriever } = await opened(t, change(cases[0]![0]));
  await assert.rejects(retriever.find({ by: 'row', keys: ['1'], limit: 1 }), { code: 'INDEX_CHANGED' });
  await assert.rejects(retriever.score({ queries: [{ query: 'a', rows: [1] }], mode: 'dense', maxRank: 0 }), {
    code: 'INDEX_CHANGED',
  });
});

test('passages are found by id and row, and scores are those of the index, also of a deleted or unknown row', async (t) => {
  const { retriever } = await opened(t, {});
  const { found } = await retriever.find({ by: 'id', keys: ['s-0002', 'nothing'], limit: 8 });
  const here = await served.retriever.find({ by: 'id', keys: ['s-0002', 'nothing'], limit: 8 });
  const fields = (each: typeof found) =>
    each.map((list) => list.map(({ row, document }) => [row, (JSON.parse(document) as { text: string }).text]));
  assert.deepEqual(fields(found), fields(here.found));
  const call = { queries: [{ query: 'a bridge', rows: [3, 1_000_000, 0] }], mode: 'dense', maxRank: 10 } as const;
  const { outcomes } = await retriever.score(call);
  const [first] = (await served.retriever.score({ ...call, queries: [{ query: 'a bridge', rows: [3, 0] }] })).outcomes;
  assert.ok(outcomes[0]?.ok === true && first?.ok === true);
  assert.deepEqual(outcomes[0].scores, [first.scores[0], { score: 0, rank: null }, first.scores[1]]);
});

test('an aborted call rejects with CANCELLED, also while it waits for the server', async (t) => {
  const stop = new AbortController();
  const fault = (number: number) => {
    if (number < OPENING) return undefined;
    // Once the client has read this reply.
    setTimeout(() => stop.abort(), 50);
    return { status: 503, retryAfter: '100' };
  };
  const { retriever } = await opened(t, { fault }, { maxWaitMs: 60_000 });
  const asked = retriever.retrieve({ queries: texts(400), k: 3, signal: stop.signal });
  await assert.rejects(asked, { code: 'CANCELLED' });
});

test('what is no Trawl server, or no single index, is refused at the beginning', async (t) => {
  await assert.rejects(
    ServerRetriever.open('http://127.0.0.1:9', { ...QUICK, attempts: 2 }),
    /cannot be asked.*2 tries/,
  );
  const html = await proxyTo(t, served.url, { reply: () => '<html></html>' });
  await assert.rejects(ServerRetriever.open(html.url, QUICK), { code: 'CONFIG_INVALID' });
  await assert.rejects(ServerRetriever.open(served.url, { ...QUICK, index: 'a/b' }), { code: 'NOT_FOUND' });
  const group = await proxyTo(t, served.url, {
    reply: (text) => text.replace('{"index":{"name":"', '{"index":{"name":"a,'),
  });
  await assert.rejects(ServerRetriever.open(group.url, QUICK), /answers from several indexes.*Name one of them/);
});
