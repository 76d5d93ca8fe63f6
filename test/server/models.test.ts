import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { AccessKeys } from '../../src/server/access/access-keys.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, serve } from './build.ts';

/** Indexes by name, with the names of their encoders. */
async function holderOf(indexes: Readonly<Record<string, string>>): Promise<IndexRegistry> {
  const targets = Object.keys(indexes).map((name) => ({ name, folder: name }));
  const holder = IndexRegistry.opening(
    targets,
    async (name) => new FakeRetriever({ index: name, model: indexes[name]! }),
  );
  await holder.open();
  return holder;
}

function clientOf(url: string, apiKey = 'none'): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

test('the official client lists the models, and every one of them embeds', async (t) => {
  const { url } = await serve(t, await holderOf({ wiki: 'e5', books: 'token-average', notes: 'e5' }));
  const client = clientOf(url);
  const models = (await client.models.list()).data;
  assert.deepEqual(
    models.map(({ id }) => id),
    ['e5', 'e5-query', 'e5-passage', 'token-average', 'token-average-query', 'token-average-passage'],
  );
  for (const model of models) {
    assert.deepEqual([model.object, model.owned_by], ['model', 'trawl']);
    assert.ok(Math.abs(model.created - Date.now() / 1000) < 60);
    assert.deepEqual(await client.models.retrieve(model.id), model);
    const { data } = await client.embeddings.create({ model: model.id, input: 'a' });
    const prefix = model.id.endsWith('-passage') ? 'passage: a' : 'query: a';
    assert.equal(data[0]!.embedding[0], prefix.length);
  }
});

test('/indexes/NAME/v1/models lists only the encoder of that index', async (t) => {
  const { url } = await serve(t, await holderOf({ wiki: 'e5', books: 'org/average' }));
  const client = clientOf(`${url}/indexes/books`);
  const ids = (await client.models.list()).data.map(({ id }) => id);
  assert.deepEqual(ids, ['org/average', 'org/average-query', 'org/average-passage']);
  assert.equal((await client.models.retrieve('org/average')).id, 'org/average');
  await assert.rejects(client.models.retrieve('e5'), OpenAI.NotFoundError);
  await assert.rejects(client.embeddings.create({ model: 'e5', input: 'a' }), OpenAI.NotFoundError);
  await assert.rejects(clientOf(`${url}/indexes/none`).models.list(), OpenAI.NotFoundError);
});

test('an unknown model is a 404 in the format of OpenAI', async (t) => {
  const { url } = await serve(t);
  await assert.rejects(clientOf(url).models.retrieve('text-embedding-3-small'), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.deepEqual([error.code, error.param], ['model_not_found', 'model']);
    assert.match(error.message, /"text-embedding-3-small" not found. Expected fake-encoder, fake-encoder-query/);
    return true;
  });
});

test('models require a key like searches, and a starting server answers 503', async (t) => {
  const keys = AccessKeys.parse('read:a-key-of-20-characters', 'test');
  const { url } = await serve(t, new FakeRetriever(), { keys });
  await assert.rejects(clientOf(url, 'another-key-of-its-own').models.list(), OpenAI.AuthenticationError);
  assert.equal((await clientOf(url, 'a-key-of-20-characters').models.list()).data.length, 3);
  const starting = build(t, new IndexRegistry());
  for (const route of ['/v1/models', '/v1/models/fake-encoder', '/v1/models?index=a&index=b']) {
    const { statusCode, headers } = await starting.inject(route);
    assert.deepEqual([statusCode, headers['retry-after']], [503, '2'], route);
    const wrong = await starting.inject({ method: 'DELETE', url: route });
    assert.deepEqual([wrong.statusCode, wrong.headers.allow], [405, 'GET, HEAD, OPTIONS'], route);
  }
});
