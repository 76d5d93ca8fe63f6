import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { CLIENTS, libraryFolder } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { withoutWords } from '../server/elasticsearch/elasticsearch-server.ts';
import { comparableReply, randomArticles, randomBody } from '../server/elasticsearch/random-bodies.ts';
import { writableServer } from '../server/elasticsearch/writable-server.ts';
import { PYTHON_CLIENTS, pythonClientFolder, runPythonScript, withoutClient } from './elasticsearch-clients.ts';
import { startElasticsearch, withoutElasticsearch } from './elasticsearch-node.ts';

const skip = withoutElasticsearch() || withoutWords;
const KEY = 'a-key-of-24-characters-x';

async function serve(t: TestContext, keys: AccessKeys | null = null): Promise<string> {
  const { app } = await writableServer(t, { config: { keys } });
  t.after(() => app.server.closeAllConnections());
  return listen(app, { host: '127.0.0.1', port: 0 });
}

type Step = readonly [method: string, path: string, body?: string | object];
interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(url: string, [method, path, body]: Step): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : {
          headers: { 'content-type': path.includes('_bulk') ? 'application/x-ndjson' : 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        }),
  });
  return { status: response.status, text: await response.text() };
}

/** A reply without what differs between any two servers, and its errors without their words. */
function comparable({ status, text }: Answer): unknown {
  return {
    status,
    body:
      text === ''
        ? ''
        : JSON.parse(text, (name, value: unknown) => {
            // Only a cluster has these settings.
            if (name === 'routing' || name === 'version') return undefined;
            if (['took', 'uuid', 'index_uuid', 'creation_date'].includes(name)) return null;
            if (name !== 'error' || typeof value !== 'object') return value;
            return (value as { type: string }).type;
          }),
  };
}

const lines = (...objects: readonly (object | string)[]): string =>
  objects.map((each) => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`).join('');
const MAPPINGS = {
  dynamic: false,
  properties: { title: { type: 'text' }, text: { type: 'text' }, source: { type: 'keyword' }, year: { type: 'long' } },
};
const SETTINGS = { number_of_shards: 1, number_of_replicas: 0, refresh_interval: '-1' };

const STEPS: readonly Step[] = [
  ['HEAD', '/ix'],
  ['DELETE', '/ix'],
  ['DELETE', '/ix?ignore_unavailable=true'],
  ['PUT', '/ix', { settings: SETTINGS, mappings: MAPPINGS }],
  ['PUT', '/ix', { settings: SETTINGS, mappings: MAPPINGS }],
  ['HEAD', '/ix'],
  ['GET', '/ix'],
  ['GET', '/ix/_mapping'],
  ['GET', '/ix/_settings'],
  ['PUT', '/Upper'],
  ['PUT', '/_under'],
  ['PUT', '/-dash'],
  ['PUT', '/ix2', { mappings: { properties: { a: { type: 'nothing' } } } }],
  ['PUT', '/ix2', { mappings: { properties: { a: { foo: 1 } } } }],
  ['PUT', '/ix2', { settings: { foo: 1 } }],
  ['PUT', '/ix2', { settings: { number_of_shards: 0 } }],
  ['PUT', '/ix2', { foo: {} }],
  ['PUT', '/ix/_doc/1', { title: 'One', text: 'a bridge', year: 1883 }],
  ['PUT', '/ix/_doc/1', { title: 'One', text: 'a bridge' }],
  ['POST', '/ix/_create/1', { text: 'a' }],
  ['PUT', '/ix/_doc/1?op_type=create', { text: 'a' }],
  ['PUT', '/ix/_create/2', { text: 'a river' }],
  ['GET', '/ix/_doc/1'],
  ['GET', '/ix/_doc/2?_source=title'],
  ['GET', '/ix/_source/2'],
  ['HEAD', '/ix/_doc/3'],
  ['GET', '/ix/_doc/3'],
  ['POST', '/ix/_mget', { ids: ['1', '3'] }],
  ['DELETE', '/ix/_doc/2'],
  ['DELETE', '/ix/_doc/2'],
  ['DELETE', '/ix/_doc/none'],
  ['POST', '/ix/_count'],
  ['POST', '/ix/_refresh'],
  ['POST', '/_refresh'],
  ['POST', '/none/_refresh'],
  ['POST', '/ix/_count'],
  ['PUT', '/ix/_doc/5', { _id: 'x' }],
  ['PUT', '/ix/_doc/5', { year: 'none' }],
  ['PUT', '/ix/_doc/5', '{'],
  ['PUT', '/ix/_doc/5'],
  ['PUT', `/ix/_doc/${'x'.repeat(513)}`, { text: 'a' }],
  ['PUT', '/ix/_doc/5?refresh=maybe', { text: 'a' }],
  ['PUT', '/ix/_doc/5?foo=1', { text: 'a' }],
  ['PUT', '/ix/_doc/5?refresh=true', { text: 'a tower' }],
  ['DELETE', '/ix/_doc/5?refresh'],
  [
    'POST',
    '/ix/_bulk',
    lines(
      { index: { _id: 'a' } },
      { title: 'Bridge', text: 'over a river', id: 7 },
      { create: { _id: 'a' } },
      { text: 'b' },
      { delete: { _id: 'a' } },
      { delete: { _id: 'a' } },
      { index: { _id: 'a' } },
      { title: 'Again', text: 'over a river' },
      { index: { _id: 'b' } },
      { year: 'none' },
      { index: { _id: 'c' } },
      '{',
      { delete: { _index: 'missing', _id: 'a' } },
      { index: { _index: 'Upper', _id: 'a' } },
      { text: 'a' },
    ),
  ],
  ['POST', '/ix/_bulk?refresh=true', lines({ index: { _id: 'd' } }, { text: 'last' })],
  ['PUT', '/_bulk?refresh=false', lines({ index: { _index: 'ix', _id: 'e' } }, { text: 'last' })],
  ['PUT', '/_bulk', lines({ index: { _index: 'ix', _id: '' } }, { text: 'a' })],
  ['PUT', '/_bulk', lines({ delete: { _index: 'ix' } })],
  ['PUT', '/auto/_doc/1?refresh=true', { text: 'one' }],
  ['GET', '/auto/_doc/1'],
  ['POST', '/auto/_count'],
  ['DELETE', '/auto,none'],
  ['DELETE', '/auto'],
  ['DELETE', '/none/_doc/1'],
  [
    'PUT',
    '/strict',
    { mappings: { dynamic: 'strict', properties: { text: { type: 'text' }, title: { type: 'text' } } } },
  ],
  ['PUT', '/strict/_doc/1', { text: 'a', other: 1 }],
  ['GET', '/strict/_mapping'],
  ['DELETE', '/strict'],
  ['POST', '/ix/_bulk', ''],
  ['POST', '/ix/_bulk', '{"index":{}}\n{}'],
  ['POST', '/ix/_bulk', '{"foo":{}}\n{}\n'],
  ['POST', '/ix/_bulk', '"index"\n{}\n'],
  ['POST', '/ix/_bulk', '{"index":{"_foo":1}}\n{}\n'],
  ['POST', '/ix/_bulk', '{"index":[]}\n{}\n'],
  ['POST', '/_bulk', '{"index":{}}\n{}\n'],
  ['POST', '/ix/_bulk?foo=1', '{"index":{}}\n{}\n'],
  ['POST', '/ix/_refresh'],
  // Elasticsearch's scores count deleted documents until it merges its segments.
  ['POST', '/ix/_search', { query: { match: { text: 'river last' } }, size: 0 }],
  ['POST', '/ix/_search', { query: { ids: { values: ['a', 'd'] } } }],
  ['PUT', '/ix/_settings', { index: { refresh_interval: '30s' } }],
  ['PUT', '/ix/_settings', { number_of_shards: 2 }],
  ['GET', '/ix/_settings'],
  ['PUT', '/ix/_mapping', MAPPINGS],
  ['DELETE', '/*'],
  ['DELETE', '/ix'],
  ['POST', '/ix/_search', {}],
];

test('each request of a life of an index is answered as Elasticsearch 8.17.1 answers it', { skip }, async (t) => {
  const node = await startElasticsearch(t);
  const url = await serve(t);
  const different: string[] = [];
  for (const step of STEPS) {
    const [expected, actual] = [await ask(node, step), await ask(url, step)];
    if (isDeepStrictEqual(comparable(actual), comparable(expected))) continue;
    different.push(
      `${step[0]} ${step[1]}\nElasticsearch: ${expected.status} ${expected.text}\nTrawl: ${actual.status} ${actual.text}`,
    );
  }
  assert.equal(different.join('\n\n'), '');
});

test('an index that is filled over HTTP has the rankings and score bits of Elasticsearch 8.17.1', {
  skip,
}, async (t) => {
  const [node, url] = [await startElasticsearch(t), await serve(t)];
  // Without the members that are not mapped: a query for one is refused here, and finds nothing there.
  const articles = randomArticles().map(({ id, title, text, source }) => ({ id, title, text, source }));
  const bulk = lines(...articles.flatMap((article) => [{ index: { _id: article.id } }, article]));
  for (const [server, merge] of [
    [node, ['POST', '/wiki_en/_forcemerge?max_num_segments=1']],
    [url, undefined],
  ] as const) {
    const made = await ask(server, ['PUT', '/wiki_en', { settings: SETTINGS, mappings: MAPPINGS }]);
    assert.equal(made.status, 200, made.text);
    assert.match((await ask(server, ['POST', '/wiki_en/_bulk', bulk])).text, /"errors":false/);
    if (merge !== undefined) assert.equal((await ask(server, merge as Step)).status, 200);
    assert.equal((await ask(server, ['POST', '/wiki_en/_refresh'])).status, 200);
  }
  const random = seededRandom(Number(process.env.TRAWL_SEED ?? 3));
  for (let i = 0; i < 200; i++) {
    const body = randomBody(random) as object;
    const step: Step = ['POST', '/wiki_en/_search', body];
    const [expected, actual] = [await ask(node, step), await ask(url, step)];
    assert.deepEqual(
      comparableReply(actual.status, actual.text),
      comparableReply(expected.status, expected.text),
      JSON.stringify(body),
    );
  }
});

/** A reply with its numbers as they are written. */
function written(text: string): unknown {
  return JSON.parse(text, (name, value: unknown, context?: { readonly source?: string }) => {
    if (name === 'took') return null;
    return typeof value === 'number' ? context?.source : value;
  });
}

test('numbers in fields and sort values are written as Elasticsearch 8.17.1 writes those of their type', {
  skip,
}, async (t) => {
  const [node, url] = [await startElasticsearch(t), await serve(t)];
  const types = ['long', 'integer', 'short', 'byte', 'double'];
  const properties = Object.fromEntries(types.map((type) => [type, { type }]));
  const numbers = [3, -4, 0, [7, 2], 100].map((value) => Object.fromEntries(types.map((type) => [type, value])));
  const documents = [...numbers, { double: 0.5, long: 12_000_000_000 }, {}].map((each, i) => ({
    text: `bridge ${i}`,
    ...each,
  }));
  const bulk = lines(...documents.flatMap((document, i) => [{ index: { _id: String(i) } }, document]));
  for (const server of [node, url]) {
    const mappings = { dynamic: false, properties: { text: { type: 'text' }, ...properties } };
    assert.equal((await ask(server, ['PUT', '/numbers', { settings: SETTINGS, mappings }])).status, 200);
    assert.match((await ask(server, ['POST', '/numbers/_bulk?refresh=true', bulk])).text, /"errors":false/);
  }
  for (const sort of [
    ...types.map((type) => [type, '_doc']),
    ...types.map((type) => [{ [type]: 'desc' }, '_doc']),
    types,
  ]) {
    for (const missing of ['_last', '_first']) {
      const criteria = sort.map((each) =>
        typeof each === 'string' && each !== '_doc' ? { [each]: { missing } } : each,
      );
      const step: Step = ['POST', '/numbers/_search', { sort: criteria, fields: types, _source: false }];
      const [expected, actual] = [await ask(node, step), await ask(url, step)];
      assert.deepEqual(written(actual.text), written(expected.text), JSON.stringify(criteria));
    }
  }
});

for (const version of PYTHON_CLIENTS) {
  test(`elasticsearch-py ${version} fills an index as ArtSearch's build script does`, {
    skip: withoutClient(pythonClientFolder(version)) || withoutWords,
  }, async (t) => {
    const url = await serve(t, AccessKeys.parse(`read:${KEY}`, 'keys'));
    assert.deepEqual(await runPythonScript(version, 'elasticsearch_fill.py', { url, key: KEY }), {
      before: false,
      bulk: [1_200, 0],
      count: 1_200,
      title: 'Brooklyn Bridge',
      keys: ['id', 'text', 'title', 'url'],
      again: true,
      conflict: [1, 'version_conflict_engine_exception'],
      exists: 'resource_already_exists_exception',
      deleted: false,
    });
  });
}

test("BEIR, elasticsearch-py's helpers, LangChain and Haystack fill and search indexes as they are", {
  skip: CLIENTS.missing() || withoutWords,
}, async (t) => {
  const sample = join(packageRoot, 'corpus', 'sample');
  const input = { url: await serve(t), sample };
  const answers = await CLIENTS.run('elasticsearch_libraries.py', input, { PYTHONPATH: libraryFolder() });
  assert.deepEqual(answers, {
    beir: 0.952,
    bulk_and_scan: {
      done: [true, 270],
      scanned: [270, 270],
      ordered: true,
      copied: [270, 270],
      parallel: [true, 270],
      pit: ['s-0001', 's-0002', 's-0003'],
      closed: true,
      refused: 'query_shard_exception',
      tokens: ['bridg'],
    },
    langchain: ['Brooklyn Bridge', 1, true],
    haystack: [270, 'Brooklyn Bridge', 'query_shard_exception', 269, 269],
  });
});
