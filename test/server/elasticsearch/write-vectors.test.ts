import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import { verifyIndex } from '../../../indexer/verify/verify-index.ts';
import { ask, type Reply, withoutWords } from './elasticsearch-server.ts';
import { idsOf, MANUAL, ndjson, succeeded, writableServer } from './writable-server.ts';

const skip = withoutWords;

/** An index whose documents have vectors in the field `embedding`. */
async function make(app: FastifyInstance, name: string, field: object, more: object = {}): Promise<Reply> {
  const properties = {
    text: { type: 'text' },
    tag: { type: 'keyword' },
    embedding: { type: 'dense_vector', ...field },
  };
  return ask(app, 'PUT', `/${name}`, { ...MANUAL, mappings: { properties: { ...properties, ...more } } });
}

async function fill(app: FastifyInstance, name: string, documents: Readonly<Record<string, object>>): Promise<void> {
  const lines = Object.entries(documents).flatMap(([_id, document]) => [{ index: { _id } }, document]);
  const { json } = succeeded(await ask(app, 'POST', `/${name}/_bulk?refresh=true`, ndjson(...lines)));
  assert.equal(json.errors, false, JSON.stringify(json));
}

async function nearest(
  app: FastifyInstance,
  name: string,
  knn: object,
  more: object = {},
): Promise<[string, number][]> {
  const body = { knn: { field: 'embedding', k: 10, num_candidates: 10, ...knn }, ...more };
  const { json } = succeeded(await ask(app, 'POST', `/${name}/_search`, body));
  const hits = json.hits!.hits as unknown as { _id: string; _score: number }[];
  return hits.map(({ _id, _score }) => [_id, Number(_score.toFixed(4))]);
}

function reasonOf({ status, json }: Reply): [number, string, string] {
  const { type, reason } = json.error!.root_cause![0] as unknown as { type: string; reason: string };
  return [status, type, reason];
}

test('knn finds the vectors of documents with the scores of each similarity', { skip }, async (t) => {
  const { app } = await writableServer(t);
  const documents = { a: [1, 0], b: [0.6, 0.8], c: [-1, 0] };
  for (const [similarity, scores] of [
    [undefined, { a: 1, b: 0.8, c: 0 }],
    ['dot_product', { a: 1, b: 0.8, c: 0 }],
    ['l2_norm', { a: 1, b: 0.5556, c: 0.2 }],
    ['max_inner_product', { a: 2, b: 1.6, c: 0.5 }],
  ] as const) {
    const name = similarity ?? 'default';
    succeeded(await make(app, name, { dims: 2, similarity }));
    await fill(
      app,
      name,
      Object.fromEntries(Object.entries(documents).map(([id, embedding]) => [id, { text: id, embedding }])),
    );
    assert.deepEqual(await nearest(app, name, { query_vector: [1, 0] }), Object.entries(scores), name);
  }
});

test('documents without a vector have words only, and knn follows filters, changes and deletions', {
  skip,
}, async (t) => {
  const server = await writableServer(t);
  const { app } = server;
  succeeded(await make(app, 'ix', { similarity: 'l2_norm' }));
  await fill(app, 'ix', { none: { text: 'bridge' }, null: { text: 'bridge', embedding: null } });
  assert.deepEqual(await nearest(app, 'ix', { query_vector: [1, 0] }), []);
  assert.deepEqual(await idsOf(app, 'ix', { match: { text: 'bridge' } }), ['none', 'null']);
  // The first vector gives the dimension.
  await fill(app, 'ix', {
    a: { text: 'bridge', tag: 'x', embedding: [1, 0], _vector: 'own', _has_vector: true },
    b: { text: 'river', tag: 'y', embedding: [0, 0] },
    c: { text: 'hill', tag: 'x', embedding: [3, 0] },
  });
  assert.deepEqual(await nearest(app, 'ix', { query_vector: [1, 0] }), [
    ['a', 1],
    ['b', 0.5],
    ['c', 0.2],
  ]);
  assert.deepEqual(await nearest(app, 'ix', { query_vector: [1, 0], k: 1, filter: { term: { tag: 'y' } } }), [
    ['b', 0.5],
  ]);
  assert.deepEqual((await idsOf(app, 'ix', { exists: { field: 'embedding' } })).toSorted(), ['a', 'b', 'c']);
  const { json: stored } = succeeded(await ask(app, 'POST', '/ix/_search', { query: { ids: { values: ['a'] } } }));
  assert.deepEqual((stored.hits!.hits as unknown as { _source: object }[])[0]!._source, {
    text: 'bridge',
    tag: 'x',
    embedding: [1, 0],
    _vector: 'own',
    _has_vector: true,
  });
  succeeded(await ask(app, 'DELETE', '/ix/_doc/a'));
  await fill(app, 'ix', { c: { text: 'hill', embedding: [1, 1] }, d: { text: 'bridge' } });
  const after = [
    ['b', 0.5],
    ['c', 0.5],
  ];
  assert.deepEqual(await nearest(app, 'ix', { query_vector: [1, 0] }), after);
  const words = { query: { match: { text: 'hill' } } };
  const both = await nearest(app, 'ix', { query_vector: [1, 0] }, words);
  assert.deepEqual(
    both.map(([id, score]) => [id, score > 0.5]),
    [
      ['c', true],
      ['b', false],
    ],
  );
  await server.stop();
  const again = await writableServer(t, { folder: server.folder });
  assert.deepEqual(await nearest(again.app, 'ix', { query_vector: [1, 0] }), after);
  const wrong = await ask(again.app, 'PUT', '/ix/_doc/e', { embedding: [1, 0, 0] });
  assert.match(reasonOf(wrong)[2], /different number of dimensions \[3\] than defined in the mapping \[2\]/);
});

test('the first vector is found although few documents are written with it, and the index can be verified', {
  skip,
}, async (t) => {
  const server = await writableServer(t);
  const { app } = server;
  succeeded(await make(app, 'ix', { similarity: 'l2_norm' }));
  await fill(app, 'ix', Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`${i}`, { text: 'bridge' }])));
  await fill(app, 'ix', { a: { text: 'bridge', embedding: [1, 0] } });
  assert.deepEqual(await nearest(app, 'ix', { query_vector: [1, 0] }), [['a', 1]]);
  assert.deepEqual(server.failures, []);
  const files = readdirSync(server.folder, { recursive: true, encoding: 'utf8' });
  const [index, ...others] = files.filter((path) => /^[^/]+\/[^/]+\/manifest\.json$/.test(path));
  assert.ok(index !== undefined && others.length === 0);
  const { problems, notChecked, sample } = await verifyIndex(dirname(join(server.folder, index)), {
    sample: 1,
    openEncoder: () => assert.fail('there is no model'),
  });
  assert.deepEqual([problems, notChecked, sample], [[], [], null]);
});

test('a vector that does not fit the mapping is refused, as a document and as a query', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await make(app, 'cosine', { dims: 2, index_options: { type: 'flat' } }));
  succeeded(await make(app, 'dot', { dims: 2, similarity: 'dot_product' }));
  for (const [name, embedding, why] of [
    ['cosine', [1, 2, 3], /different number of dimensions \[3\] than defined in the mapping \[2\]/],
    ['cosine', [0, 0], /\[cosine\] similarity does not support vectors with zero magnitude/],
    ['cosine', [1, 'NaN'], /finite values, but \[embedding\] has "NaN"/],
    ['cosine', [1, 1e39], /finite values/],
    ['cosine', [1, null], /finite values, but \[embedding\] has null/],
    ['cosine', [], /must be a list of numbers/],
    ['cosine', 'text', /must be a list of numbers/],
    ['dot', [1, 1], /\[dot_product\] similarity can only be used with unit-length vectors/],
  ] as const) {
    const reply = reasonOf(await ask(app, 'PUT', `/${name}/_doc/1`, { text: 'a', embedding }));
    assert.deepEqual(reply.slice(0, 2), [400, 'document_parsing_exception']);
    assert.match(reply[2], why);
  }
  // Also before the first document.
  for (const [name, query_vector, why] of [
    ['cosine', [1, 0, 0], /different number of dimensions \[3\] than the document vectors \[2\]/],
    ['cosine', [0, 0], /zero magnitude/],
    ['dot', [1, 1], /unit-length/],
  ] as const) {
    const reply = await ask(app, 'POST', `/${name}/_search`, { knn: { field: 'embedding', query_vector, k: 1 } });
    assert.match(reasonOf(reply)[2], why);
    assert.equal(reply.status, 400);
  }
  // Of several first vectors the first gives the dimension.
  succeeded(await make(app, 'first', {}));
  const [one, two] = [{ embedding: [1, 0, 0] }, { embedding: [1, 0] }];
  const { json } = succeeded(await ask(app, 'POST', '/first/_bulk', ndjson({ index: {} }, one, { index: {} }, two)));
  assert.deepEqual(
    (json.items as unknown as { index: { status: number } }[]).map(({ index }) => index.status),
    [201, 400],
  );
});

test('a mapping of vectors that cannot be searched is refused by name', { skip }, async (t) => {
  const { app } = await writableServer(t);
  for (const [field, more, why] of [
    [{ dims: 0 }, {}, /range \[1, 4096\] but was \[0\]/],
    [{ dims: 5_000 }, {}, /range \[1, 4096\]/],
    [{ similarity: 'near' }, {}, /there are \[cosine\], \[dot_product\], \[l2_norm\], \[max_inner_product\]/],
    [{ element_type: 'byte' }, {}, /\[element_type\] of the field \[embedding\] must be \[float\]/],
    [{ foo: 1 }, {}, /unknown parameter \[foo\] on mapper \[embedding\] of type \[dense_vector\]/],
    [{}, { second: { type: 'dense_vector' } }, /searches one field of type \[dense_vector\].*\[second\] to false/],
  ] as const) {
    const [status, type, reason] = reasonOf(await make(app, 'wrong', field, more));
    assert.deepEqual([status, type], [400, 'mapper_parsing_exception']);
    assert.match(reason, why);
  }
  succeeded(await make(app, 'two', { dims: 2 }, { second: { type: 'dense_vector', index: false } }));
  await fill(app, 'two', { a: { text: 'a', embedding: [1, 0], second: [1] } });
  const stored = await ask(app, 'POST', '/two/_search', { knn: { field: 'second', query_vector: [1], k: 1 } });
  assert.match(reasonOf(stored)[2], /\[second\] is stored and not searched/);
});

test('vectors of clients have no model: other routes search the words', { skip }, async (t) => {
  const { app } = await writableServer(t);
  succeeded(await make(app, 'ix', { dims: 2 }));
  await fill(app, 'ix', { a: { text: 'a bridge', embedding: [1, 0] } });
  const words = succeeded(await ask(app, 'POST', '/v1/search?index=ix', { queries: ['bridge'] }));
  const [found] = words.json.results![0]!.hits as unknown as { id: string }[];
  assert.equal(found!.id, 'a');
  const dense = await ask(app, 'POST', '/v1/search?index=ix', { queries: ['bridge'], mode: 'dense' });
  assert.match(dense.text, /NOT_SUPPORTED/);
  assert.ok(dense.status >= 400, dense.text);
});
