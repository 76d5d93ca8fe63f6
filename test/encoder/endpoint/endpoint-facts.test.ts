import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEndpoints, readFacts } from '../../../src/encoder/endpoint/endpoint-facts.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

async function factsOf(pages: Readonly<Record<string, unknown>>, wanted?: string) {
  const [address] = parseEndpoints('http://host:1/');
  return readFacts(address!, async (url) => pages[new URL(url).pathname], wanted);
}

test('what a server says about its model is read from its own pages', async () => {
  const models = (...data: object[]): Readonly<Record<string, unknown>> => ({ '/v1/models': { object: 'list', data } });
  const none = { revision: null, maxTokens: null, maxTexts: null, takesInputType: false };
  const cases = [
    [
      {
        ...models({ id: 'nomic-embed-text:latest', owned_by: 'library' }),
        '/api/tags': { models: [{ name: 'nomic-embed-text:latest', digest: 'd1' }] },
      },
      undefined,
      { ...none, software: 'ollama', model: 'nomic-embed-text:latest', revision: 'd1' },
    ],
    [
      { ...models({ id: 'm', owned_by: 'sglang', max_model_len: 512 }), '/model_info': { weight_version: 'w7' } },
      undefined,
      { ...none, software: 'sglang', model: 'm', maxTokens: 512, revision: 'w7' },
    ],
    [
      models({ id: 'a' }, { id: 'b', max_model_len: 8192 }),
      'b',
      { ...none, software: null, model: 'b', maxTokens: 8192 },
    ],
    [
      { '/models': { object: 'list', data: [{ id: 'all-MiniLM-L6-v2', owned_by: 'infinity', backend: 'torch' }] } },
      undefined,
      { ...none, software: 'infinity', model: 'all-MiniLM-L6-v2' },
    ],
    [{}, undefined, { ...none, software: null, model: null }],
    [{}, 'text-embedding-3-small', { ...none, software: null, model: 'text-embedding-3-small' }],
    [{ '/v1/models': 'odd', '/info': [] }, undefined, { ...none, software: null, model: null }],
    [
      {
        // It has the pages of text-embeddings-inference, too.
        '/info': { server: 'trawl', model_id: 'e5', model_type: { embedding: { pooling: 'mean' } } },
        ...models(...['e5', 'e5-query', 'e5-passage'].map((id) => ({ id, owned_by: 'trawl' }))),
        '/v1/indexes': { indexes: [{ model: null }, { model: { name: 'e5', sha256: 'abc' } }] },
      },
      undefined,
      { ...none, software: 'trawl', model: 'e5', revision: 'abc', takesInputType: true },
    ],
    [
      {
        '/info': { model_id: 'm', model_sha: null, model_type: 'odd', max_input_length: -1, max_client_batch_size: 32 },
      },
      undefined,
      { ...none, software: 'text-embeddings-inference', model: 'm', maxTexts: 32 },
    ],
  ] as const;
  for (const [pages, wanted, expected] of cases) assert.deepEqual(await factsOf(pages, wanted), expected);
});

test('addresses are separated by commas; the path decides the route', () => {
  const routes = (text: string): string[][] =>
    parseEndpoints(text).map((address) => address.routes.map(({ api, url }) => `${api} ${url}`));
  assert.deepEqual(routes('http://a:8000, https://b/proxy/'), [
    ['openai http://a:8000/v1/embeddings', 'openai http://a:8000/embeddings', 'tei http://a:8000/embed'],
    ['openai https://b/proxy/v1/embeddings', 'openai https://b/proxy/embeddings', 'tei https://b/proxy/embed'],
  ]);
  assert.deepEqual(routes('https://api.openai.com/v1'), [['openai https://api.openai.com/v1/embeddings']]);
  assert.deepEqual(routes('http://a/x/embeddings?api-version=1'), [['openai http://a/x/embeddings?api-version=1']]);
  assert.deepEqual(routes('http://a/embed'), [['tei http://a/embed']]);
  const [secret] = parseEndpoints('http://a/embed?key=secret');
  assert.equal(secret!.shown, 'http://a/embed');
  assert.throws(() => parseEndpoints('http://a,'), trawlError('CONFIG_INVALID', /not valid/));
});
