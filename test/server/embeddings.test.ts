import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { openEndpoint } from '../../src/encoder/endpoint/open-endpoint.ts';
import type { EmbedCall, EmbedResult } from '../../src/search/retriever.ts';
import type { RetrieverInfo } from '../../src/search/retriever-info.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { build, getFrom, type Posted, postTo, serve } from './build.ts';

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

interface TeiReply {
  readonly error: string;
  readonly error_type: string;
}

test('TEI’s /embed refuses what it cannot do, with TEI’s statuses and errors', async (t) => {
  const app = build(t, new Truncating(), { maxQueries: 3 });
  const long = 'x'.repeat(300);
  for (const [body, status, error] of [
    [{}, 422, /inputs: Field required/],
    [{ inputs: [] }, 422, /at least 1/],
    [{ inputs: [[1, 2]] }, 422, /inputs\.0: .*valid string/],
    [{ inputs: ['a', null] }, 422, /inputs\.1/],
    [{ inputs: Array(4).fill('a') }, 413, /limit of this server is 3/],
    [{ inputs: 'a', prompt_name: 'classification' }, 422, /'query' or 'passage' or 'document'/],
    [{ inputs: 'a', dimensions: 2 }, 422, /Expected 4, the dimension of fake-encoder/],
    [{ inputs: 'a', normalize: false }, 422, /fake-encoder gives all vectors the length 1/],
    [{ inputs: ['a', long], truncate: false }, 413, /inputs\[1\] has more than 256 tokens.*truncate: true/],
    [{ inputs: long, truncation_direction: 'Left' }, 413, /inputs\[0\] .*leave truncation_direction out/],
    ['{', 422, /JSON/],
  ] as const) {
    for (const path of ['/embed', '/']) {
      const reply = await postTo(app, path, body);
      const { error: message, error_type } = reply.json as TeiReply;
      assert.deepEqual([reply.status, error_type], [status, 'Validation'], reply.text);
      assert.match(message, error);
    }
  }
  for (const body of [
    { inputs: long },
    { inputs: long, truncate: null, truncation_direction: 'right' },
    { inputs: 'abc', truncate: false, truncation_direction: 'left', dimensions: 4, normalize: true },
  ]) {
    assert.equal((await postTo(app, '/embed', body)).status, 200, JSON.stringify(body));
  }
});

test('TEI’s /embed normalises vectors that the encoder does not, unless normalize is false', async (t) => {
  const retriever = new FakeRetriever();
  const { info } = retriever;
  const app = build(t, Object.assign(retriever, { info: { ...info, model: { ...info.model!, normalize: false } } }));
  const raw = [3, 97, 98, 99];
  const length = Math.hypot(...raw);
  assert.deepEqual((await postTo(app, '/embed', { inputs: 'abc', normalize: false })).json, [raw]);
  assert.deepEqual((await postTo(app, '/embed', { inputs: 'abc' })).json, [
    [...Float32Array.from(raw, (value) => value / length)],
  ]);
});

test('TEI’s /info names the encoder, the reranker and their limits', async (t) => {
  const facts = async (change: Partial<RetrieverInfo>): Promise<Posted> => {
    const retriever = new FakeRetriever();
    return getFrom(
      build(t, Object.assign(retriever, { info: { ...retriever.info, ...change } }), { maxQueries: 7 }),
      '/info',
      {},
    );
  };
  const both = (await facts({})).json as Record<string, unknown>;
  assert.deepEqual(
    [both.server, both.model_id, both.max_input_length, both.max_client_batch_size, both.auto_truncate],
    ['trawl', 'fake-encoder', 256, 7, true],
  );
  assert.deepEqual(Object.keys(both.model_type as object), ['embedding', 'reranker']);
  const words = (await facts({ model: null, dimension: 0, metric: null })).json as Record<string, unknown>;
  assert.deepEqual([words.model_id, words.max_input_length], ['fake-reranker', 512]);
  const none = await facts({ model: null, reranker: null });
  assert.deepEqual([none.status, (none.json as TeiReply).error_type], [424, 'Backend']);
});

test('Trawl recognises its own server behind /info, and leaves the prefixes to it', async (t) => {
  const { url } = await serve(t);
  const encoder = await openEndpoint(url);
  t.after(() => encoder.close());
  const { endpoint, prefixes } = encoder.identity;
  assert.deepEqual([endpoint?.software, endpoint?.api, prefixes], ['trawl', 'openai', { query: '', passage: '' }]);
  assert.deepEqual([...(await encoder.encode(['abc'], { inputType: 'passage' })).vectors], vectorOf('passage', 'abc'));
  const { outcomes } = await encoder.encode(['abc'], { inputType: 'plain' });
  assert.equal(outcomes[0]?.ok === false && outcomes[0].error.code, 'NOT_SUPPORTED');
});

/** Says of texts over the limit that they were truncated. */
class Truncating extends FakeRetriever {
  override async embed(call: EmbedCall): Promise<EmbedResult> {
    const result = await super.embed(call);
    const outcomes = result.outcomes.map((outcome) =>
      outcome.ok && (outcome.tokens ?? 0) > 256 ? { ...outcome, truncated: true, cut: 'tail' as const } : outcome,
    );
    return { ...result, outcomes };
  }
}
