import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { TrawlError } from '../../src/base/errors.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { NO_STATISTICS } from '../../src/search/retriever-statistics.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import { ServerMetrics } from '../../src/server/metrics/server-metrics.ts';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { build, eventually, openSocket, post, postTo, readToEnd, serve } from './build.ts';

/** Values by name with labels. */
async function metricsOf(app: FastifyInstance): Promise<Map<string, number>> {
  const { statusCode, payload, headers } = await app.inject('/metrics');
  assert.equal(statusCode, 200);
  assert.match(String(headers['content-type']), /^text\/plain; version=0\.0\.4/);
  return parse(payload);
}

/** Over a socket, because some metrics are updated only when a response has been sent. */
async function send(url: string, path: string, body: unknown): Promise<void> {
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = { 'content-type': 'application/json', connection: 'close' };
  await (await fetch(`${url}${path}`, { method: 'POST', headers, body: payload })).text();
}

/** Resolves when no request is in flight. */
async function settled(app: FastifyInstance): Promise<Map<string, number>> {
  for (;;) {
    const values = await metricsOf(app);
    if (values.get('trawl_requests_in_flight') === 0) return values;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function parse(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name, value] = /^(\S+(?:\{[^}]*\})?) (\S+)$/.exec(line) ?? assert.fail(line);
    assert.ok(!values.has(name!), `${name} occurs twice`);
    values.set(name!, Number(value));
  }
  return values;
}

test('requests, queries, stages and sizes are counted by dialect', async (t) => {
  const { app, url } = await serve(t);
  await send(url, '/retrieve', { queries: ['a', 'b'] });
  await send(url, '/retrieve', { queries: ['a'.repeat(2_000)] });
  await send(url, '/retrieve', { query: 'a', topk: 1 });
  await send(url, '/v1/embeddings', { input: ['a'], model: 'fake-encoder' });
  const values = await settled(app);
  assert.equal(values.get('trawl_requests_total{dialect="search-r1",status="200"}'), 2);
  assert.equal(values.get('trawl_requests_total{dialect="skyrl",status="200"}'), 1);
  assert.equal(values.get('trawl_queries_total{dialect="search-r1"}'), 3);
  assert.equal(values.get('trawl_queries_total{dialect="openai-embeddings"}'), 1);
  assert.equal(values.get('trawl_truncated_queries_total'), 1);
  for (const stage of ['parse', 'queue', 'embed', 'search', 'fetch', 'reply', 'total']) {
    assert.equal(values.get(`trawl_stage_seconds_count{stage="${stage}"}`), 4, stage);
  }
  assert.equal(values.get('trawl_stage_seconds_sum{stage="search"}'), 0.0015);
  assert.equal(values.get('trawl_request_queries_bucket{le="1"}'), 3);
  assert.equal(values.get('trawl_query_rescored_rows_count'), 4);
  assert.equal(values.get('trawl_requests_in_flight'), 0);
  assert.equal(values.get('trawl_ready'), 1);
});

test('errors are counted by code, on every route', async (t) => {
  const retriever = new FakeRetriever({
    before: () => {
      throw new TrawlError('OVERLOADED', 'x');
    },
  });
  const { app, port, url } = await serve(t, retriever);
  await send(url, '/retrieve', { queries: ['a'] });
  await send(url, '/retrieve', { queries: 3 });
  await send(url, '/retrieve', '{');
  await app.inject('/nowhere');
  const socket = await openSocket(t, port);
  socket.write('garbage\r\n\r\n');
  await readToEnd(socket);
  const values = await settled(app);
  const errors = Object.fromEntries([...values].filter(([name]) => name.startsWith('trawl_errors_total')));
  assert.deepEqual(errors, {
    'trawl_errors_total{code="OVERLOADED"}': 1,
    'trawl_errors_total{code="INVALID_REQUEST"}': 2,
    'trawl_errors_total{code="INVALID_JSON"}': 1,
    'trawl_errors_total{code="NOT_FOUND"}': 1,
  });
  assert.equal(values.get('trawl_requests_total{dialect="search-r1",status="503"}'), 1);
  assert.equal(values.get('trawl_requests_total{dialect="unknown",status="422"}'), 1);
});

test('requests in flight are counted until they end or their client disconnects', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { app, port } = await serve(t, retriever);
  const socket = await openSocket(t, port);
  const body = '{"queries":["a"]}';
  socket.write(`POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  await eventually(() => retriever.calls.length === 1);
  const during = await metricsOf(app);
  assert.equal(during.get('trawl_requests_in_flight'), 1);
  assert.equal(during.get('trawl_connections'), 1);
  socket.destroy();
  await eventually(() => retriever.calls[0]?.signal?.aborted === true);
  const after = await settled(app);
  assert.equal(after.get('trawl_requests_in_flight'), 0);
  assert.equal(after.get('trawl_requests_total{dialect="search-r1",status="499"}'), 1);
  assert.equal(after.get('trawl_connections'), 0);
  assert.equal(after.get('trawl_body_bytes'), 0);
});

test('index metrics have generation, model and sizes, after a reload only the new ones', async (t) => {
  let nth = 0;
  const slot = new IndexSlot('wiki', { folder: '/x' }, async () => {
    nth++;
    if (nth === 3) throw new TrawlError('INDEX_NOT_FOUND', 'x');
    return new FakeRetriever({ index: 'wiki', generation: `g${nth}` });
  });
  const holder = new IndexRegistry([slot]);
  await holder.open();
  const app = build(t, holder);
  const info = (values: Map<string, number>): string[] =>
    [...values.keys()].filter((name) => name.startsWith('trawl_index_info'));
  const labels = 'model="fake-encoder",metric="inner-product"';
  assert.deepEqual(info(await metricsOf(app)), [`trawl_index_info{index="wiki",generation="g1",${labels}}`]);
  for (let i = 0; i < 2; i++) await postTo(app, '/admin/indexes/wiki/reload', {});
  const values = await metricsOf(app);
  assert.deepEqual(info(values), [`trawl_index_info{index="wiki",generation="g2",${labels}}`]);
  assert.equal(values.get('trawl_index_rows{index="wiki"}'), 5);
  assert.equal(values.get('trawl_index_reloads_total{index="wiki",result="done"}'), 1);
  assert.equal(values.get('trawl_index_reloads_total{index="wiki",result="failed"}'), 1);
});

test('statistics of the retrievers are exported by index and stage', async (t) => {
  const zero = new FakeRetriever().statistics();
  const retriever = new FakeRetriever({
    statistics: () => ({
      ...zero,
      encoder: { ...zero.encoder, waitingTexts: 7, texts: 40, chunks: 4 },
      search: {
        ...zero.search,
        waitingQueries: 3,
        queries: 1_050,
        batches: 4,
        batchSizes: [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1],
        expectedWaitMs: 250,
      },
      sharing: { ...zero.sharing, cached: 11, coalesced: 12, computed: 13 },
    }),
  });
  const values = await metricsOf(build(t, retriever));
  const at = (name: string, stage?: string): number | undefined =>
    values.get(`${name}{index="fake-sample"${stage === undefined ? '' : `,stage="${stage}"`}}`);
  assert.deepEqual([at('trawl_queue_queries', 'embed'), at('trawl_queue_queries', 'search')], [7, 3]);
  assert.deepEqual([at('trawl_batches_total', 'embed'), at('trawl_batch_queries_total', 'search')], [4, 1_050]);
  const size = (part: string): number | undefined => values.get(`trawl_search_batch_queries_${part}}`);
  assert.deepEqual(
    ['1', '3', '7', '15', '31', '1023', '+Inf'].map((le) => size(`bucket{index="fake-sample",le="${le}"`)),
    [1, 1, 2, 2, 3, 3, 4],
  );
  assert.deepEqual([size('sum{index="fake-sample"'), size('count{index="fake-sample"')], [1_050, 4]);
  assert.equal(at('trawl_queue_expected_wait_seconds', 'search'), 0.25);
  assert.deepEqual(
    ['cached', 'coalesced', 'computed'].map((what) => at(`trawl_${what}_queries_total`)),
    [11, 12, 13],
  );
});

test('counters continue through reloads, and gauges are summed over generations that still answer', async (t) => {
  const zero = NO_STATISTICS;
  const of = (nth: number) => ({
    encoder: { ...zero.encoder, texts: nth, waitingTexts: 10 },
    search: { ...zero.search, queries: nth, batches: nth, batchSizes: [nth], rescoredRows: nth },
    lexical: zero.lexical,
    rerank: zero.rerank,
    waiting: { calls: 1, bytes: 100, maxBytes: 1_000, refused: nth },
    sharing: { ...zero.sharing, cached: nth, computed: 2 * nth, cacheBytes: 7 },
  });
  let nth = 0;
  const slot = new IndexSlot('wiki', { folder: '/x' }, async () => {
    const generation = ++nth;
    return new FakeRetriever({ index: 'wiki', statistics: () => of(10 ** (generation - 1)) });
  });
  const holder = new IndexRegistry([slot]);
  await holder.open();
  const app = build(t, holder);
  const counts = async (): Promise<unknown[]> => {
    const values = await metricsOf(app);
    const value = (name: string): number | undefined => values.get(name);
    return [
      value('trawl_batch_queries_total{index="wiki",stage="embed"}'),
      value('trawl_search_batch_queries_bucket{index="wiki",le="1"}'),
      value('trawl_computed_queries_total{index="wiki"}'),
      value('trawl_rescored_rows_total{index="wiki"}'),
      value('trawl_queue_queries{index="wiki",stage="embed"}'),
      value('trawl_waiting_bytes{index="wiki"}'),
      value('trawl_waiting_bytes_max{index="wiki"}'),
      value('trawl_cache_bytes{index="wiki"}'),
    ];
  };
  assert.deepEqual(await counts(), [1, 1, 2, 1, 10, 100, 1_000, 7]);
  const lease = slot.lease()!;
  await slot.load();
  assert.deepEqual(await counts(), [11, 11, 22, 11, 20, 200, 1_000, 14]);
  lease.release();
  await eventually(() => slot.draining === 0);
  assert.deepEqual(await counts(), [11, 11, 22, 11, 10, 100, 1_000, 7]);
  await slot.load();
  await eventually(() => slot.draining === 0);
  assert.deepEqual(await counts(), [111, 111, 222, 111, 10, 100, 1_000, 7]);
});

test('a client cannot create labels', async (t) => {
  const app = build(t);
  const namesOf = async (): Promise<string[]> =>
    [...(await metricsOf(app)).keys()].map((name) => name.replace(/\d+/g, ''));
  await post(app, { queries: ['a'] });
  await app.inject('/x');
  const before = await namesOf();
  for (let i = 0; i < 50; i++) {
    await postTo(app, `/retrieve?index=made-up-${i}`, { queries: ['a'] });
    await postTo(app, `/indexes/made-up-${i}/retrieve`, { queries: ['a'] });
    await app.inject(`/nothing/${i}`);
    await app.inject({ url: '/livez', headers: { 'x-request-id': `id-${i}` } });
  }
  const after = await namesOf();
  assert.deepEqual(
    after.filter((name) => !before.includes(name)),
    ['trawl_requests_total{dialect="search-r",status=""}', 'trawl_requests_total{dialect="unknown",status=""}'].filter(
      (name) => !before.includes(name),
    ),
  );
  assert.ok(!after.some((name) => name.includes('made-up')));
});

test('listeners of one process share their metrics, and two servers do not', async (t) => {
  const metrics = new ServerMetrics();
  const one = await serve(t, new FakeRetriever(), { metrics });
  const two = await serve(t, new FakeRetriever(), { metrics });
  const other = await serve(t);
  await send(one.url, '/retrieve', { queries: ['a'] });
  await send(two.url, '/retrieve', { queries: ['a'] });
  const name = 'trawl_requests_total{dialect="search-r1",status="200"}';
  assert.equal((await settled(one.app)).get(name), 2);
  assert.equal((await settled(two.app)).get(name), 2);
  assert.equal((await settled(other.app)).get(name), undefined);
});

test('process metrics have memory and event-loop delay', async () => {
  const text = await new ServerMetrics({ process: true }).text();
  for (const name of [
    'process_resident_memory_bytes',
    'nodejs_eventloop_lag_p99_seconds',
    'process_cpu_seconds_total',
  ]) {
    assert.match(text, new RegExp(`^${name} `, 'm'));
  }
});

test('dropped lines are counted at each scrape', async (t) => {
  const metrics = new ServerMetrics();
  let dropped = 3;
  metrics.dropped('record', () => dropped);
  const app = build(t, new FakeRetriever(), { metrics });
  const name = 'trawl_dropped_lines_total{what="record"}';
  assert.equal((await metricsOf(app)).get(name), 3);
  dropped = 5;
  assert.equal((await metricsOf(app)).get(name), 5);
});

test('docs/operations.md names every metric, and no other', async (t) => {
  const { body } = await build(t).inject('/metrics');
  const exported = [...body.matchAll(/^# TYPE (trawl_\w+)/gm)].map(([, name]) => name!);
  const page = readFileSync(join(packageRoot, 'docs', 'operations.md'), 'utf8');
  const written = [...page.matchAll(/trawl_\w+/g)].map(([name]) => name);
  assert.deepEqual([...new Set(written)].sort(), exported.sort());
});

test('the 404 for a path that cannot be decoded has the usual headers', async (t) => {
  const { headers, statusCode } = await build(t).inject({ url: '/%zz', headers: { 'x-request-id': 'a-1' } });
  assert.equal(statusCode, 404);
  assert.deepEqual([headers['x-request-id'], headers['x-content-type-options']], ['a-1', 'nosniff']);
  assert.match(String(headers['server-timing']), /^total;dur=\d+\.\d{3}$/);
});

test('every response has server-timing', async (t) => {
  const app = build(t);
  for (const url of [
    '/livez',
    '/readyz',
    '/',
    '/docs',
    '/metrics',
    '/v1/indexes',
    '/v1/passages/0',
    '/nowhere',
    '/health',
  ]) {
    assert.match(String((await app.inject(url)).headers['server-timing']), /^total;dur=\d+\.\d{3}$/, url);
  }
});

test('with a sampled log one of N responses has a line, and every error has one', async (t) => {
  const { pino } = await import('pino');
  const lines: string[] = [];
  const logger = pino(
    { base: null },
    { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
  );
  const app = build(t, new FakeRetriever(), { logger, logEvery: 4 });
  for (let i = 0; i < 12; i++) await post(app, { queries: ['a'] });
  for (let i = 0; i < 5; i++) await post(app, { queries: 1 });
  assert.equal(lines.filter((msg) => msg === 'retrieved').length, 3);
  assert.equal(lines.filter((msg) => msg === 'request refused').length, 5);
});
