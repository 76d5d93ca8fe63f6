import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { openOtlpTracer } from '../../../src/server/tracing/otlp-tracer.ts';
import type { RequestTracer } from '../../../src/server/tracing/tracer.ts';
import { postJson, runTrawl, serveIndex } from '../../cli/run-trawl.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { buildSampleIndex } from '../../helpers/sample-index.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { serve } from '../build.ts';

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
}

interface Collector {
  readonly url: string;
  readonly spans: OtlpSpan[];
  readonly resources: unknown[];
  readonly headers: Readonly<Record<string, unknown>>[];
}

/** A receiver of OTLP over HTTP in JSON. */
async function collector(t: TestContext, status = 200): Promise<Collector> {
  const [spans, resources, headers]: [OtlpSpan[], unknown[], Record<string, unknown>[]] = [[], [], []];
  const server = createServer(async (request, response) => {
    assert.equal(request.url, '/v1/traces');
    headers.push(request.headers);
    const body = (await json(request)) as {
      resourceSpans: { resource: unknown; scopeSpans: { spans: OtlpSpan[] }[] }[];
    };
    for (const { resource, scopeSpans } of body.resourceSpans) {
      resources.push(resource);
      for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, resources, headers };
}

async function tracerTo(endpoint: string, share = 1): Promise<RequestTracer & { readonly failures: string[] }> {
  const failures: string[] = [];
  const tracer = await openOtlpTracer({ endpoint, share, version: '1.2.3', onFailure: (text) => failures.push(text) });
  return { ...tracer, failures };
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/retrieve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** The status line can reach the client before the server's response has ended. */
async function closed(tracer: RequestTracer): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50));
  await tracer.close();
}

function attributesOf({ attributes }: OtlpSpan): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = 'b7ad6b7169203331';

test('a search is a span below that of the client, and its stages are spans within it', async (t) => {
  const { url: endpoint, spans, resources } = await collector(t);
  const tracer = await tracerTo(endpoint);
  const { url } = await serve(t, new FakeRetriever(), { tracer });
  const answer = await post(url, { queries: ['a', 'b'] }, { traceparent: `00-${TRACE}-${PARENT}-01` });
  const timing = answer.headers.get('server-timing')!;
  await answer.arrayBuffer();
  await closed(tracer);
  const root = spans.find(({ name }) => name === 'POST /retrieve')!;
  assert.deepEqual([root.traceId, root.parentSpanId, root.kind], [TRACE, PARENT, 2]);
  const { 'trawl.request_id': id, ...attributes } = attributesOf(root);
  assert.equal(id, answer.headers.get('x-request-id'));
  assert.deepEqual(attributes, {
    'http.request.method': 'POST',
    'http.route': '/retrieve',
    'http.response.status_code': 200,
    'trawl.dialect': 'search-r1',
    'trawl.index': 'fake-sample',
    'trawl.queries': 2,
  });
  const nanoseconds = (span: OtlpSpan): [bigint, bigint] => [
    BigInt(span.startTimeUnixNano),
    BigInt(span.endTimeUnixNano),
  ];
  const [begun, ended] = nanoseconds(root);
  assert.ok(Math.abs(Number(begun / 1_000_000n) - Date.now()) < 60_000);
  const stages = spans.filter(({ parentSpanId }) => parentSpanId === root.spanId);
  assert.ok(stages.some(({ name }) => name === 'parse') && stages.some(({ name }) => name === 'reply'));
  for (const stage of stages) {
    const [from, to] = nanoseconds(stage);
    assert.ok(from >= begun && to <= ended + 1_000_000n, stage.name);
    const ms = Number(new RegExp(`${stage.name};dur=([\\d.]+)`).exec(timing)![1]);
    assert.ok(Math.abs(Number(to - from) / 1e6 - ms) < 0.01, `${stage.name}: ${to - from} ns, ${ms} ms`);
  }
  const resource = attributesOf(resources[0] as OtlpSpan);
  assert.deepEqual([resource['service.name'], resource['service.version']], ['trawl', '1.2.3']);
});

test('a request without traceparent begins a trace of its own, and monitoring is not traced', async (t) => {
  const { url: endpoint, spans } = await collector(t);
  const tracer = await tracerTo(endpoint);
  const { url } = await serve(t, new FakeRetriever(), { tracer });
  for (const path of ['/health', '/metrics', '/readyz']) await (await fetch(url + path)).arrayBuffer();
  await (await post(url, { queries: ['a'] })).arrayBuffer();
  await (await post(url, { queries: ['a'] }, { traceparent: 'no such thing' })).arrayBuffer();
  await closed(tracer);
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined || parentSpanId === '');
  assert.deepEqual(
    roots.map(({ name }) => name),
    ['POST /retrieve', 'POST /retrieve'],
  );
  assert.notEqual(roots[0]!.traceId, roots[1]!.traceId);
});

test('the flag in traceparent decides, and a share of the other requests is traced', async (t) => {
  const { url: endpoint, spans } = await collector(t);
  const tracer = await tracerTo(endpoint, 0);
  const { url } = await serve(t, new FakeRetriever(), { tracer });
  await (await post(url, { queries: ['a'] })).arrayBuffer();
  await (await post(url, { queries: ['a'] }, { traceparent: `00-${TRACE}-${PARENT}-00` })).arrayBuffer();
  await (await post(url, { queries: ['a'] }, { traceparent: `00-${TRACE}-${PARENT}-01` })).arrayBuffer();
  await closed(tracer);
  assert.equal(spans.filter(({ name }) => name === 'POST /retrieve').length, 1);
});

test('a refused request is traced without an error, one that the server failed with an error', async (t) => {
  const { url: endpoint, spans } = await collector(t);
  const tracer = await tracerTo(endpoint);
  const failing = new FakeRetriever();
  failing.retrieve = () => Promise.reject(new Error('broken'));
  const { url } = await serve(t, failing, { tracer });
  assert.equal((await post(url, { queries: 1 })).status, 422);
  assert.equal((await post(url, { queries: ['a'] })).status, 500);
  await closed(tracer);
  const roots = spans.filter(({ name }) => name === 'POST /retrieve');
  assert.deepEqual(
    roots.map((span) => [attributesOf(span)['http.response.status_code'], span.status.code ?? 0]),
    [
      [422, 0],
      [500, 2],
    ],
  );
});

test('requests are answered while the collector refuses, and the failure is reported', async (t) => {
  const { url: endpoint } = await collector(t, 400);
  const tracer = await tracerTo(endpoint);
  const { url } = await serve(t, new FakeRetriever(), { tracer });
  assert.equal((await post(url, { queries: ['a'] })).status, 200);
  await closed(tracer);
  assert.ok(tracer.failures.length > 0);
});

test('credentials and the name of the service come from the variables of OpenTelemetry', async (t) => {
  process.env.OTEL_EXPORTER_OTLP_HEADERS = 'authorization=Bearer%20secret';
  process.env.OTEL_RESOURCE_ATTRIBUTES = 'service.name=wiki,deployment.environment=test';
  t.after(() => {
    delete process.env.OTEL_EXPORTER_OTLP_HEADERS;
    delete process.env.OTEL_RESOURCE_ATTRIBUTES;
  });
  const { url: endpoint, resources, headers } = await collector(t);
  const tracer = await tracerTo(`${endpoint}/`);
  const { url } = await serve(t, new FakeRetriever(), { tracer });
  await (await post(url, { queries: ['a'] })).arrayBuffer();
  await closed(tracer);
  assert.equal(headers[0]!.authorization, 'Bearer secret');
  const resource = attributesOf(resources[0] as OtlpSpan);
  assert.deepEqual([resource['service.name'], resource['deployment.environment']], ['wiki', 'test']);
});

test('the trace of a request that waits shows the wait: parse, queue, embed, search, fetch and reply, in this order', async (t) => {
  const { url: endpoint, spans } = await collector(t);
  const server = await serveIndex(t, await buildSampleIndex(await tempFolder(t)), ['--trace-to', endpoint]);
  const questions = Array.from({ length: 40 }, (_, i) => `which bridge is number ${i}?`);
  const replies = await Promise.all(questions.map((question) => postJson(server.url, { queries: [question] })));
  assert.ok(replies.every(({ status }) => status === 200));
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
  const traces = spans
    .filter(({ name }) => name === 'POST /retrieve')
    .map(({ spanId }) =>
      spans
        .filter(({ parentSpanId }) => parentSpanId === spanId)
        .sort((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)))
        .map(({ name }) => name),
    );
  assert.equal(traces.length, questions.length);
  const waiting = traces.filter((names) => names.includes('queue'));
  assert.ok(waiting.length > 0, 'no request has waited');
  for (const names of waiting) assert.deepEqual(names, ['parse', 'queue', 'embed', 'search', 'fetch', 'reply']);
});

test('an address that is not one of HTTP is refused', async () => {
  for (const endpoint of ['127.0.0.1:4318', 'grpc://127.0.0.1:4317', '']) {
    await assert.rejects(tracerTo(endpoint), { code: 'CONFIG_INVALID', message: /expected an http or https URL/ });
  }
});

test('trawl serve --trace-to sends its traces before it ends, and refuses an address that is not one of HTTP', async (t) => {
  const { url: endpoint, spans } = await collector(t);
  const index = await buildSampleIndex(await tempFolder(t));
  const server = await serveIndex(t, index, ['--trace-to', endpoint]);
  assert.equal((await postJson(server.url, { queries: ['bridge'] })).status, 200);
  server.child.kill('SIGTERM');
  assert.equal((await server.ended).code, 0);
  assert.deepEqual(
    ['POST /retrieve', 'embed', 'search', 'fetch'].filter((name) => spans.some((span) => span.name === name)),
    ['POST /retrieve', 'embed', 'search', 'fetch'],
  );
  const refused = await runTrawl(['serve', index, '--trace-to', 'collector:4318']);
  assert.match(refused.stderr, /expected an http or https URL.*\[CONFIG_INVALID\]/);
});
