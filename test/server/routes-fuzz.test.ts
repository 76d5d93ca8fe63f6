import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import type { FastifyInstance, HTTPMethods, RouteOptions } from 'fastify';
import { runRefresh } from '../../indexer/writable/refresh-job.ts';
import { WritableFolder } from '../../indexer/writable/writable-folder.ts';
import type { WritableIndexes } from '../../src/index/document-store/writable-indexes.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import { runTrawl } from '../cli/run-trawl.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { runs } from '../helpers/runs.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build } from './build.ts';

const SEED = 20_261_123;
const RUNS = runs(8, 25);

interface Route {
  readonly method: HTTPMethods;
  readonly url: string;
}

/** An app with every optional route, and its route table: a new route is in it by itself. */
async function appWithRoutes(t: TestContext, holder: IndexRegistry, writable: WritableIndexes) {
  const routes: Route[] = [];
  const onCreated = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }: RouteOptions) => {
      for (const each of [method].flat()) routes.push({ method: each, url });
    });
  };
  subscribe('fastify.initialization', onCreated);
  const config = { dialects: ['elasticsearch'], mcp: { hosts: [] }, writable, maxQueries: 50, maxK: 100 };
  const app = build(t, holder, config);
  unsubscribe('fastify.initialization', onCreated);
  await app.ready();
  return { app, routes };
}

/** The names of all fields that requests have, and a few of Elasticsearch's queries and of no one. */
const FIELDS = [
  ...new Set(DIALECTS.flatMap(({ request }) => Object.keys((request as { properties?: object }).properties ?? {}))),
  ...['size', 'from', '_source', 'docs', 'knn', 'sort', 'aggs', 'search_type', 'constructor', '__proto__', 'unknown'],
];

const INDEXES = ['fake-sample', 'words', 'all', 'none', ''];

const filter = fc.oneof(
  fc.constantFrom<unknown>(
    "source = 'wiki'",
    'and',
    'date >= 2020',
    '',
    { column: 'x', equals: 1 },
    { and: [] },
    { not: {} },
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
);

const esQuery = fc.constantFrom<unknown>(
  { match: { contents: 'river' } },
  { match_all: {} },
  { bool: { must: [{ match: { text: 'x' } }], must_not: { ids: { values: [1] } } } },
  { multi_match: { query: 'river', fields: ['title^2', 'text'] } },
  { knn: {} },
  { term: null },
);

const text = fc.oneof(
  fc.constantFrom('river', '', '<search>x</search>', '\ud800', 'a '.repeat(500)),
  fc.string({ unit: 'binary' }),
);

/** Values for a field: right for some field, of another type, huge, or arbitrary. */
const value = fc.oneof(
  text,
  filter,
  esQuery,
  fc.array(text, { maxLength: 3 }),
  fc.array(fc.constantFrom(...INDEXES), { maxLength: 3 }),
  fc.array(fc.array(fc.record({ contents: text }), { maxLength: 2 }), { maxLength: 2 }),
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    2.5,
    1e308,
    2 ** 53,
    '2',
    [],
    {},
    [null],
    { words: 3 },
    { tokens: 1 },
    { depth: 5 },
  ),
  fc.constantFrom(...INDEXES, 'dense', 'bm25', 'hybrid', 'rrf', 'document'),
  fc.integer({ min: -3, max: 4_000 }),
  fc.jsonValue({ maxDepth: 3 }),
);

const body = fc.oneof(
  { weight: 8, arbitrary: fc.dictionary(fc.constantFrom(...FIELDS), value, { maxKeys: 6 }) },
  {
    weight: 1,
    arbitrary: fc.constant({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'search', arguments: { query: 'x', filter: 'a = 1' } },
    }),
  },
  { weight: 1, arbitrary: fc.jsonValue() },
);

const parameter = fc.oneof(
  fc.constantFrom(...INDEXES, 's-1', '0', '%', '_all', 'w*'),
  fc.string({ unit: 'binary', maxLength: 8 }),
);

const query = fc.dictionary(
  fc.constantFrom('index', 'query', 'k', 'from', 'size', 'q', 'format', 'v', 'session_id', 'unknown'),
  fc.oneof(parameter, fc.integer().map(String)),
  { maxKeys: 3 },
);

/** Two indexes and a group, and a folder of writable indexes. */
async function servedIndexes(t: TestContext): Promise<{ holder: IndexRegistry; writable: WritableIndexes }> {
  const close: (() => Promise<void>)[] = [];
  // Hooks run in their order, and the next one removes the folder.
  t.after(async () => {
    for (const part of close) await part();
  });
  const folder = await tempFolder(t);
  const corpus = join(folder, 'corpus.jsonl');
  const texts = ['river flows', 'old bridge', 'river and bridge'];
  writeFileSync(corpus, texts.map((each, id) => `${JSON.stringify({ id, text: each })}\n`).join(''));
  const out = join(folder, 'words');
  const { code, stderr } = await runTrawl(['index', corpus, '--bm25', '--out', out, '--quiet']);
  assert.equal(code, 0, stderr);
  const slots = [
    new IndexSlot('fake-sample', { folder: 'a' }, async () => new FakeRetriever()),
    new IndexSlot('words', { folder: out }, (name, target) => openRetriever(target.folder, { name })),
  ];
  const holder = new IndexRegistry(slots, new Map([['all', ['fake-sample', 'words']]]));
  const events = { onRefreshed: () => undefined, onFailure: () => undefined };
  const writable = WritableFolder.prepare(join(folder, 'writable'), events, runRefresh);
  close.push(
    () => writable.close(),
    () => holder.close(),
  );
  await writable.attach(holder, (name, { folder }) => openRetriever(folder, { modes: ['bm25'], name }));
  await holder.open();
  return { holder, writable };
}

test('no request to any route of the server makes it fail: every status is below 500, 501 or 503, with a reason', async (t) => {
  const { holder, writable } = await servedIndexes(t);
  const { app, routes } = await appWithRoutes(t, holder, writable);
  const urls = new Set(routes.map(({ url }) => url));
  for (const { path } of DIALECTS) if (path !== '/:index/_search') assert.ok(urls.has(path), path);
  for (const url of ['/mcp', '/:index/_search', '/_msearch', '/_bulk', '/v1/passages/:id', '/metrics'])
    assert.ok(urls.has(url), url);
  const seen = new Set<number>();
  for (const { method, url } of routes) {
    await fc.assert(
      fc.asyncProperty(
        body,
        fc.array(parameter, { minLength: 3, maxLength: 3 }),
        query,
        async (payload, names, parameters) => {
          let next = 0;
          const path = url
            .replaceAll(/:\w+(\([^)]*\))?/g, () => encodeURIComponent(wellFormed(names[next++ % 3]!) || 'x'))
            .replaceAll('*', 'x');
          const hasBody = ['POST', 'PUT', 'DELETE', 'PATCH'].includes(method);
          const response = await app.inject({
            method: method as 'POST',
            url: path,
            query: Object.fromEntries(Object.entries(parameters).map(([name, each]) => [name, wellFormed(each)])),
            headers: {
              // An event stream would not end.
              accept: method === 'GET' ? 'application/json' : 'application/json, text/event-stream',
              ...(hasBody ? { 'content-type': 'application/json' } : {}),
            },
            ...(hasBody ? { payload: JSON.stringify(payload) } : {}),
          });
          const { statusCode: status } = response;
          seen.add(status);
          assert.ok(
            status < 500 || status === 501 || status === 503,
            `${method} ${path}: ${status} ${response.payload}`,
          );
          if (status < 400 || method === 'HEAD') return;
          const reply = response.json<Record<string, unknown>>();
          assert.ok('error' in reply || 'detail' in reply || 'found' in reply || 'result' in reply, response.payload);
        },
      ),
      { numRuns: RUNS, seed: SEED },
    );
  }
  for (const status of [200, 400, 404, 422]) assert.ok(seen.has(status), `never a ${status}`);
  assert.equal((await app.inject('/livez')).statusCode, 200);
});

function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}
