import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, postTo, serve } from './build.ts';

/** The fake encoder's vector. */
function vectorOf(inputType: string, text: string): number[] {
  const whole = `${inputType}: ${text}`;
  return [whole.length, whole.charCodeAt(0), whole.charCodeAt(1), whole.charCodeAt(2)];
}

test('the official client gets vectors, in base64 by default and as numbers', async (t) => {
  const { url } = await serve(t);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  const byDefault = await client.embeddings.create({ model: 'fake-encoder', input: ['one', 'two 💧'] });
  const asNumbers = await client.embeddings.create({
    model: 'fake-encoder',
    input: ['one', 'two 💧'],
    encoding_format: 'float',
  });
  assert.deepEqual(
    byDefault.data.map(({ embedding }) => Array.from(embedding)),
    [vectorOf('query', 'one'), vectorOf('query', 'two 💧')],
  );
  assert.deepEqual(asNumbers.data, byDefault.data);
  assert.equal(byDefault.object, 'list');
  assert.equal(byDefault.model, 'fake-encoder');
  const tokens = 'query: one'.length + 'query: two 💧'.length;
  assert.deepEqual(byDefault.usage, { prompt_tokens: tokens, total_tokens: tokens });
  const single = await client.embeddings.create({ model: 'fake-encoder-passage', input: '' });
  assert.deepEqual(
    single.data.map(({ index, embedding }) => [index, Array.from(embedding)]),
    [[0, vectorOf('passage', '')]],
  );
});

test('the official client throws its own error classes', async (t) => {
  const { url } = await serve(t);
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
  await assert.rejects(client.embeddings.create({ model: 'text-embedding-3-small', input: 'a' }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.deepEqual([error.code, error.param], ['model_not_found', 'model']);
    return true;
  });
  await assert.rejects(client.embeddings.create({ model: 'fake-encoder', input: [[1, 2, 3]] }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.deepEqual([error.code, error.param, error.type], ['INVALID_REQUEST', 'input', 'invalid_request_error']);
    assert.match(error.message, /Send texts/);
    return true;
  });
  const starting = await serve(t, new IndexRegistry());
  const early = new OpenAI({ baseURL: `${starting.url}/v1`, apiKey: 'none', maxRetries: 0 });
  await assert.rejects(early.embeddings.create({ model: 'fake-encoder', input: 'a' }), OpenAI.InternalServerError);
});

test('the input type comes from the model’s name or from input_type, which must not contradict each other', async (t) => {
  const app = build(t);
  const embed = async (fields: object): Promise<{ status: number; vector: unknown; message: string }> => {
    const { status, json } = await postTo(app, '/v1/embeddings', { input: 'x', model: 'fake-encoder', ...fields });
    const body = json as { data?: { embedding: unknown }[]; error?: { message: string } };
    return { status, vector: body.data?.[0]?.embedding, message: body.error?.message ?? '' };
  };
  const passage = vectorOf('passage', 'x');
  assert.deepEqual((await embed({ model: 'fake-encoder-query' })).vector, vectorOf('query', 'x'));
  assert.deepEqual((await embed({ model: 'fake-encoder-passage' })).vector, passage);
  assert.deepEqual((await embed({ input_type: 'passage' })).vector, passage);
  assert.deepEqual((await embed({ input_type: 'passage', model: 'fake-encoder-passage' })).vector, passage);
  assert.match(
    (await embed({ input_type: 'query', model: 'fake-encoder-passage' })).message,
    /is for input_type passage, but input_type is query/,
  );
  assert.equal((await embed({ dimensions: 4 })).status, 200);
  assert.match((await embed({ dimensions: 2 })).message, /4 dimensions/);
  assert.equal((await embed({ model: 'fake-encoder-document' })).status, 404);
});

test('a wrong request is a 400 that names the field', async (t) => {
  const app = build(t, new FakeRetriever(), { maxQueries: 3 });
  for (const [body, param] of [
    [{ model: 'fake-encoder' }, 'input'],
    [{ input: 'a' }, 'model'],
    [{ input: [], model: 'fake-encoder' }, 'input'],
    [{ input: [1], model: 'fake-encoder' }, 'input'],
    [{ input: ['a', 1], model: 'fake-encoder' }, 'input'],
    [{ input: 'a', model: 'fake-encoder', encoding_format: 'int8' }, 'encoding_format'],
    [{ input: 'a', model: 'fake-encoder', dimensions: 0 }, 'dimensions'],
    [{ input: 'a', model: 'fake-encoder', dimensions: 2 }, 'dimensions'],
    [{ input: 'a', model: 'fake-encoder', input_type: 'document' }, 'input_type'],
    [{ input: ['a', 'b', 'c', 'd'], model: 'fake-encoder' }, 'input'],
    ['{', null],
  ] as const) {
    const { status, json } = await postTo(app, '/v1/embeddings', body);
    const { error } = json as { error: { param: unknown; type: string } };
    const name = JSON.stringify(body);
    assert.equal(status, 400, name);
    assert.equal(error.type, 'invalid_request_error', name);
    if (param !== null) assert.equal(error.param, param, name);
  }
});
