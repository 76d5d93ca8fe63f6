import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { type OpenEndpointOptions, openEndpoint } from '../../../src/encoder/endpoint/open-endpoint.ts';
import type { EncodeResult } from '../../../src/encoder/text-encoder.ts';
import type { IndexManifest } from '../../../src/index/manifest/index-manifest.ts';
import { openIndexEncoder } from '../../../src/search/opening/open-index-encoder.ts';
import { clientMessage } from '../../../src/server/errors/error-status.ts';
import {
  type AskedEmbedding,
  type EmbeddingServer,
  ENDPOINT_DIMENSION,
  embeddingServer,
  endpointVector,
} from '../../helpers/embedding-server.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { opened } from './opened-endpoint.ts';

/** The requests after the probes. */
async function requestsOf(server: EmbeddingServer, work: () => Promise<unknown>): Promise<AskedEmbedding[]> {
  const before = server.asked.length;
  await work();
  return server.asked.slice(before);
}

function rowOf({ vectors }: EncodeResult, row: number): number[] {
  return [...vectors.subarray(row * ENDPOINT_DIMENSION, (row + 1) * ENDPOINT_DIMENSION)];
}

const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);
const status = (
  response: { writeHead(code: number, headers?: object): { end(text: string): void } },
  code: number,
  headers = {},
): true => {
  response.writeHead(code, headers).end('{"error":{"message":"refused, sk-secret"}}');
  return true;
};

/** The address of a server that has ended. */
async function closedPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

test('model, dimension, limit, normalisation and prompts are found out', async (t) => {
  const server = await embeddingServer(t);
  const encoder = await opened(t, server.url);
  const { name, dimension, normalize, prefixes, maxTokens, batchInvariant, precision, pooling, endpoint } =
    encoder.identity;
  assert.deepEqual(
    { name, dimension, normalize, prefixes, maxTokens, batchInvariant, precision, pooling },
    {
      name: 'tiny-e5',
      dimension: ENDPOINT_DIMENSION,
      normalize: true,
      prefixes: { query: 'query: ', passage: 'passage: ' },
      maxTokens: { query: 600, passage: 600 },
      batchInvariant: false,
      precision: null,
      pooling: 'none',
    },
  );
  assert.deepEqual([endpoint!.api, endpoint!.software, endpoint!.overlong], ['openai', 'vllm', 'truncated']);
  assert.deepEqual(
    endpoint!.probes.map((probe) => probe.name),
    ['query', 'passage', 'scripts', 'spaces', 'upper case', 'lower case', 'digits', 'long'],
  );
  assert.doesNotMatch(JSON.stringify(encoder.identity), /127\.0\.0\.1/, 'an index names no machine');
});

test("a text has the endpoint's vector of prefix and text, whatever the order of the reply and the encoding", async (t) => {
  for (const sendsNumbers of [false, true]) {
    const server = await embeddingServer(t, {
      sendsNumbers,
      change: (reply) => ({ ...reply, data: reply.data.toReversed() }),
    });
    const encoder = await opened(t, `${server.url}/v1`);
    const result = await encoder.encode(texts(5), { inputType: 'query' });
    for (const [i, text] of texts(5).entries()) {
      assert.deepEqual(rowOf(result, i), [...endpointVector(`query: ${text}`)]);
    }
    assert.deepEqual(
      [result.tokens, result.outcomes[0]],
      [15, { ok: true, tokens: null, truncated: false, cut: 'nothing' }],
    );
    const [one] = (await encoder.encode(['a b'], { inputType: 'passage' })).outcomes;
    assert.deepEqual(one, { ok: true, tokens: 3, truncated: false, cut: 'nothing' });
  }
});

test('text-embeddings-inference is asked at /embed if it has no /v1/embeddings, in requests of its own size', async (t) => {
  const pages = {
    '/info': {
      model_id: 'BAAI/bge-small-en-v1.5',
      model_sha: 'abc',
      model_type: { embedding: { pooling: 'cls' } },
      max_input_length: 512,
      max_client_batch_size: 4,
      version: '1.8.0',
    },
  };
  const server = await embeddingServer(t, { routes: ['tei'], pages, limit: 512 });
  const encoder = await opened(t, server.url);
  const { name, prefixes, maxTokens, endpoint } = encoder.identity;
  assert.deepEqual(
    [name, endpoint!.api, endpoint!.revision, endpoint!.software, maxTokens.query],
    ['BAAI/bge-small-en-v1.5', 'tei', 'abc', 'text-embeddings-inference 1.8.0', 512],
  );
  assert.match(prefixes.query, /^Represent this sentence/);
  const asked = await requestsOf(server, async () => {
    const result = await encoder.encode(texts(10), { inputType: 'passage' });
    assert.deepEqual(rowOf(result, 9), [...endpointVector('text 9', { limit: 512 })]);
    assert.equal(result.tokens, 20, 'the sum of the headers x-compute-tokens');
  });
  assert.deepEqual(
    asked.map((each) => each.texts.length),
    [4, 4, 2],
  );
  assert.deepEqual(asked[0]!.body, { inputs: texts(4), normalize: true, truncate: true });
  const reranker = { '/info': { ...pages['/info'], model_type: { reranker: {} } } };
  const other = await embeddingServer(t, { pages: reranker });
  await assert.rejects(openEndpoint(other.url), trawlError('ENDPOINT_FAILED', /is not an encoder \(reranker\)/));
});

test('members are added to the requests of queries and of passages, and the key goes with each', async (t) => {
  const server = await embeddingServer(t);
  const encoder = await opened(t, server.url, {
    apiKey: 'sk-secret',
    queryRequest: { prompt_name: 'query' },
    passageRequest: { dimensions: 8 },
    overrides: { queryPrefix: '', passagePrefix: '' },
  });
  const asked = await requestsOf(server, async () => {
    await encoder.encode(['a'], { inputType: 'query' });
    await encoder.encode(['a'], { inputType: 'passage' });
  });
  assert.deepEqual(
    asked.map(({ body }) => body),
    [
      { input: ['a'], model: 'tiny-e5', encoding_format: 'base64', prompt_name: 'query' },
      { input: ['a'], model: 'tiny-e5', encoding_format: 'base64', dimensions: 8 },
    ],
  );
  assert.ok(server.asked.every(({ authorization }) => authorization === 'Bearer sk-secret'));
  assert.doesNotMatch(JSON.stringify(encoder.identity), /secret/);
});

test("an index that is opened with an address asks for the endpoint's model, not for the address", async (t) => {
  const server = await embeddingServer(t);
  const { identity } = await opened(t, server.url);
  const manifest = { model: identity, dimension: ENDPOINT_DIMENSION } as IndexManifest;
  const asked = await requestsOf(server, async () => {
    const encoder = await openIndexEncoder('index', manifest, { model: server.url });
    await encoder.close();
  });
  assert.deepEqual([...new Set(asked.map(({ body }) => body.model))], ['tiny-e5']);
});

test('requests are limited in texts and estimated tokens, and run at the same time within a bound', async (t) => {
  const server = await embeddingServer(t, { delayMs: 5 });
  const encoder = await opened(t, server.url, { requests: 3, batchTexts: 10, batchTokens: 100 });
  const long = 'word '.repeat(100);
  const asked = await requestsOf(server, () => encoder.encode([...texts(25), long, long], { inputType: 'passage' }));
  assert.deepEqual(
    asked.map((each) => each.texts.length).sort((a, b) => b - a),
    [10, 10, 5, 1, 1],
  );
  assert.ok(server.running.most <= 3);
  assert.equal(encoder.load.waitingTexts, 0);
  assert.equal(encoder.load.texts, 27);
});

test('a request is repeated after 429 and 503 with Retry-After and after a lost connection', async (t) => {
  let from = Number.POSITIVE_INFINITY;
  const server = await embeddingServer(t, {
    answer(_asked, count, response, request) {
      if (count === from) return status(response, 429, { 'retry-after': '0' });
      if (count === from + 1) return status(response, 503, { 'retry-after-ms': '1' });
      if (count === from + 2) return Boolean(request.socket.destroy());
      return false;
    },
  });
  const encoder = await opened(t, server.url);
  from = server.asked.length + 1;
  const result = await encoder.encode(['a'], { inputType: 'query' });
  assert.deepEqual(rowOf(result, 0), [...endpointVector('query: a')]);
  assert.equal(server.asked.length, from + 3);
});

test('a text for which an endpoint refuses a request, or answers 500, fails alone', async (t) => {
  let isOpen = false;
  const server = await embeddingServer(t, {
    answer({ texts: own }, _count, response) {
      if (!isOpen) return false;
      if (own.some((text) => text.includes('poison'))) return status(response, 400);
      return own.some((text) => text.includes('broken')) && status(response, 500);
    },
  });
  const encoder = await opened(t, server.url, { batchTexts: 4 });
  isOpen = true;
  const inputs = texts(12);
  inputs[1] = 'poison';
  inputs[6] = 'broken';
  const { outcomes } = await encoder.encode(inputs, { inputType: 'passage' });
  assert.deepEqual(
    outcomes.flatMap((outcome, i) => (outcome.ok ? [] : [`${i} ${outcome.error.code}`])),
    ['1 ENDPOINT_REFUSED', '6 ENDPOINT_FAILED'],
  );
  for (const outcome of outcomes) {
    if (!outcome.ok) assert.doesNotMatch(outcome.error.message, /private|secret|poison|broken/);
  }
});

test('replies that lie are refused, without the row in the result', async (t) => {
  type Reply = { data: { index: number; embedding: unknown }[] };
  const first = (reply: Reply, change: object): Reply => ({
    ...reply,
    data: [{ ...reply.data[0]!, ...change }, ...reply.data.slice(1)],
  });
  const nan = Buffer.alloc(4 * ENDPOINT_DIMENSION, 0xff).toString('base64');
  const lies: [(reply: Reply) => unknown, RegExp][] = [
    [(reply) => ({ ...reply, data: reply.data.slice(1) }), /1 vectors for 2 texts/],
    [(reply) => first(reply, { index: 1 }), /the index 1 twice/],
    [(reply) => first(reply, { index: 7 }), /the index 7; expected 0 to 1/],
    [(reply) => first(reply, { index: undefined }), /the index undefined/],
    [(reply) => first(reply, { embedding: [1, 0, 0] }), /has 3 values; expected 8/],
    [(reply) => first(reply, { embedding: nan }), /has NaN in column 0/],
    [(reply) => first(reply, { embedding: [1e39, 0, 0, 0, 0, 0, 0, 0] }), /has Infinity in column 0/],
    [(reply) => first(reply, { embedding: ['1', 0, 0, 0, 0, 0, 0, 0] }), /not a number/],
    [(reply) => first(reply, { embedding: 'AAAA$' }), /not base64/],
    [(reply) => first(reply, { embedding: [[1], [2]] }), /late interaction/],
    [(reply) => first(reply, { embedding: [0.1, 0, 0, 0, 0, 0, 0, 0] }), /length 0.100/],
    [(reply) => first(reply, { embedding: null }), /is missing/],
    [() => ({ error: 'busy' }), /no list `data`/],
    [() => [], /no list `data`/],
  ];
  let lie: ((reply: Reply) => unknown) | undefined;
  const server = await embeddingServer(t, { change: (reply) => lie?.(reply) });
  const encoder = await opened(t, server.url);
  for (const [change, message] of lies) {
    lie = change;
    const result = await encoder.encode(['a', 'b'], { inputType: 'query' });
    const [a] = result.outcomes;
    assert.ok(a?.ok === false && trawlError('ENDPOINT_FAILED', message)(a.error));
    // Clients learn the fault, too, without the address and advice for operators.
    assert.match(clientMessage(a.error), message);
    assert.doesNotMatch(clientMessage(a.error), /127\.0\.0\.1|--/);
    assert.ok(rowOf(result, 0).every((value) => value === 0));
  }
});

test('an endpoint that is slow, breaks off, redirects or sends no JSON fails its texts', async (t) => {
  let how = '';
  const server = await embeddingServer(t, {
    answer(_asked, _count, response) {
      if (how === 'slow') return true;
      if (how === 'break') {
        response.writeHead(200, { 'content-length': '1000' }).write('{"data":[');
        response.destroy();
      } else if (how === 'redirect') response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
      else if (how === 'text') response.end('<html>');
      return how !== '';
    },
  });
  const encoder = await opened(t, server.url, { timeoutMs: 500, attempts: 2 });
  for (const [each, message] of [
    ['slow', /no answer within 500 ms, 2 times/],
    ['break', /no connection.*, 2 times/],
    ['redirect', /a redirect \(status 307\), which is not followed/],
    ['text', /a reply that is not JSON/],
  ] as const) {
    how = each;
    const [outcome] = (await encoder.encode(['a'], { inputType: 'query' })).outcomes;
    assert.ok(outcome?.ok === false && trawlError('ENDPOINT_FAILED', message)(outcome.error));
  }
});

test('requests are balanced over several endpoints, and go on without one that is away', async (t) => {
  let away = false;
  const one = await embeddingServer(t, { delayMs: 3 });
  const two = await embeddingServer(t, {
    delayMs: 3,
    answer: (_asked, _count, _response, request) => away && Boolean(request.socket.destroy()),
  });
  const encoder = await opened(t, `${one.url},${two.url}`, { requests: 2, batchTexts: 2 });
  const [before, others] = [one.asked.length, two.asked.length];
  await encoder.encode(texts(40), { inputType: 'passage' });
  assert.equal(one.asked.length - before + two.asked.length - others, 20);
  assert.ok(one.asked.length - before >= 5 && two.asked.length - others >= 5);
  away = true;
  const { outcomes } = await encoder.encode(texts(40), { inputType: 'passage' });
  assert.ok(outcomes.every(({ ok }) => ok));
});

test('endpoints of two models are refused, as are a name that is twice and other APIs', async (t) => {
  const one = await embeddingServer(t);
  const two = await embeddingServer(t, { seed: () => 'other' });
  await assert.rejects(openEndpoint(`${one.url},${two.url}`), trawlError('MODEL_MISMATCH', /differ.*query -?0\.\d{4}/));
  await assert.rejects(openEndpoint(`${one.url},${one.url}`), trawlError('CONFIG_INVALID', /named twice/));
  const tei = await embeddingServer(t, { routes: ['tei'] });
  await assert.rejects(openEndpoint(`${one.url},${tei.url}`), trawlError('CONFIG_INVALID', /different APIs/));
});

test('an endpoint that cannot be used is refused at the start, without key and password in the message', async (t) => {
  const cases: [Promise<string> | string, OpenEndpointOptions, 'ENDPOINT_FAILED' | 'CONFIG_INVALID', RegExp][] = [
    [closedPort(), {}, 'ENDPOINT_FAILED', /no connection \(ECONNREFUSED\).*Check that the server runs/],
    ['http://user:secret@host/', {}, 'CONFIG_INVALID', /--endpoint-key-file/],
    ['http://', {}, 'CONFIG_INVALID', /not valid/],
    [embeddingServer(t, { routes: [] }).then(({ url }) => url), {}, 'ENDPOINT_FAILED', /status 404/],
    [
      embeddingServer(t, { answer: (_asked, _count, response) => status(response, 401) }).then(({ url }) => url),
      { apiKey: 'sk-secret' },
      'ENDPOINT_FAILED',
      /status 401.*--endpoint-key-file/,
    ],
    [
      embeddingServer(t, { pages: { '/v1/models': { data: [{ id: 'a' }, { id: 'b' }] } } }).then(({ url }) => url),
      {},
      'CONFIG_INVALID',
      /2 models: a, b.*--endpoint-model/,
    ],
    [embeddingServer(t).then(({ url }) => `${url}/embed`), {}, 'ENDPOINT_FAILED', /status 404/],
    [embeddingServer(t).then(({ url }) => `${url}/embed`), { api: 'openai' }, 'CONFIG_INVALID', /the other API/],
    [
      embeddingServer(t).then(({ url }) => url),
      { overrides: { pooling: 'cls' } },
      'CONFIG_INVALID',
      /pooling cannot be set/,
    ],
    [
      embeddingServer(t).then(({ url }) => url),
      { overrides: { maxQueryTokens: 64 } },
      'CONFIG_INVALID',
      /maxQueryTokens/,
    ],
    [
      embeddingServer(t).then(({ url }) => url),
      { overrides: { dimension: 9 } },
      'CONFIG_INVALID',
      /--dimension is 9, but the endpoint's vectors have 8 values/,
    ],
    [embeddingServer(t).then(({ url }) => url), { overrides: { normalize: false } }, 'CONFIG_INVALID', /no effect/],
  ];
  for (const [url, options, code, message] of cases) {
    await assert.rejects(openEndpoint(await url, { firstWaitMs: 1, ...options }), (error: Error) => {
      assert.doesNotMatch(error.message, /secret|private/);
      return trawlError(code, message)(error);
    });
  }
});

test('vectors are cut to their first values and normalised by Trawl if the endpoint does not', async (t) => {
  const server = await embeddingServer(t, { length: 3 });
  const plain = await opened(t, server.url);
  assert.equal(plain.identity.normalize, false);
  const [raw, unit] = [endpointVector('passage: a', { length: 3 }), endpointVector('passage: a')];
  assert.deepEqual(rowOf(await plain.encode(['a'], { inputType: 'passage' }), 0), [...raw]);
  const encoder = await opened(t, server.url, { overrides: { dimension: 4, normalize: true } });
  const { vectors } = await encoder.encode(['a'], { inputType: 'passage' });
  const length = Math.hypot(...unit.subarray(0, 4));
  for (const [i, value] of vectors.entries()) assert.ok(Math.abs(value - unit[i]! / length) < 1e-6);
  assert.deepEqual([vectors.length, encoder.identity.dimension, encoder.identity.fullDimension], [4, 4, 8]);
});

test('an endpoint that refuses long texts is distinguished from one that truncates them', async (t) => {
  const warnings: string[] = [];
  const server = await embeddingServer(t, { refusesLong: true });
  const encoder = await opened(t, server.url, { onWarning: (warning) => warnings.push(warning) });
  assert.equal(encoder.identity.endpoint!.overlong, 'refused');
  assert.equal(encoder.identity.endpoint!.probes.at(-1)!.vector, null);
  assert.match(warnings.join(), /refuses texts that are longer than its model takes \(600 tokens\)/);
  const { outcomes } = await encoder.encode(['short', 'long '.repeat(700)], { inputType: 'passage' });
  assert.deepEqual(
    outcomes.map(({ ok }) => ok),
    [true, false],
  );
  const cutting = await opened(t, (await embeddingServer(t)).url);
  const [cut] = (await cutting.encode(['long '.repeat(700)], { inputType: 'passage' })).outcomes;
  assert.deepEqual(cut, { ok: true, tokens: 600, truncated: true, cut: 'tail' });
});

test("tokens are read from the header of text-embeddings-inference's own route, and a cut text is seen by them", async (t) => {
  const server = await embeddingServer(t, { routes: ['tei'], pages: {}, limit: 512 });
  const encoder = await opened(t, `${server.url}/embed`);
  const { maxTokens, endpoint } = encoder.identity;
  assert.deepEqual([maxTokens.passage, endpoint!.overlong, endpoint!.probes[0]!.tokens], [512, 'truncated', 5]);
  const encode = async (text: string) => (await encoder.encode([text], { inputType: 'passage' })).outcomes[0];
  assert.deepEqual(await encode('a b c'), { ok: true, tokens: 3, truncated: false, cut: 'nothing' });
  assert.deepEqual(await encode('long '.repeat(600)), { ok: true, tokens: 512, truncated: true, cut: 'tail' });
  for (const teiTokens of ['', '0', '-3', '1.5', 'many', '99999999999999999999']) {
    const other = await opened(t, (await embeddingServer(t, { routes: ['tei'], pages: {}, teiTokens })).url);
    const { tokens, outcomes } = await other.encode(['a b c'], { inputType: 'passage' });
    assert.deepEqual(
      [tokens, outcomes[0]],
      [undefined, { ok: true, tokens: null, truncated: false, cut: 'nothing' }],
      teiTokens,
    );
  }
});

test('question and history are joined by the separator; keeping the query needs a tokenizer', async (t) => {
  const server = await embeddingServer(t);
  const encoder = await opened(t, server.url, { separator: '[SEP]' });
  const input = { question: 'who', query: 'where' };
  const result = await encoder.encode([input, 'plain'], { inputType: 'query' });
  assert.deepEqual(rowOf(result, 0), [...endpointVector('query: who [SEP] where')]);
  const { outcomes } = await encoder.encode([input, 'plain'], { inputType: 'query', truncate: 'question' });
  const [refused, plain] = outcomes;
  assert.ok(refused?.ok === false && trawlError('NOT_SUPPORTED', /tokenizer/)(refused.error));
  assert.ok(plain?.ok);
});

test('an endpoint that changes is refused until it is as before, or only reported', async (t) => {
  let seed = '';
  const server = await embeddingServer(t, { seed: () => seed });
  for (const onChange of ['refuse', 'report'] as const) {
    seed = '';
    const warnings: string[] = [];
    let onNext: (() => void) | undefined;
    const warned = (): Promise<void> => new Promise((resolve) => (onNext = resolve));
    const encoder = await opened(t, server.url, {
      checkEveryMs: 5,
      onChange,
      onWarning(warning) {
        warnings.push(warning);
        onNext?.();
      },
    });
    await encoder.encode(['a'], { inputType: 'query' });
    const changed = warned();
    seed = 'other';
    // Refused if the check ends before the answer.
    await encoder.encode(['a'], { inputType: 'query' }).catch(trawlError('MODEL_MISMATCH'));
    await changed;
    assert.match(warnings[0]!, /gives other vectors than the model of the index\. Similarities of the probes: .*query/);
    if (onChange === 'refuse') {
      await assert.rejects(
        encoder.encode(['a'], { inputType: 'query' }),
        trawlError('MODEL_MISMATCH', /other vectors/),
      );
      assert.equal(encoder.failure?.code, 'MODEL_MISMATCH');
    } else {
      assert.equal(encoder.failure, undefined);
      await encoder.encode(['a'], { inputType: 'query' });
    }
    const back = warned();
    seed = '';
    if (onChange === 'report') await encoder.encode(['a'], { inputType: 'query' });
    await back;
    assert.match(warnings[1]!, /gives the vectors of before again/);
    assert.ok((await encoder.encode(['a'], { inputType: 'query' })).outcomes[0]!.ok);
    await encoder.close();
  }
});

test('an aborted call and a closed encoder are cancelled', async (t) => {
  let hangs = false;
  let reach = (): void => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const server = await embeddingServer(t, {
    answer: () => {
      if (hangs) reach();
      return hangs;
    },
  });
  const encoder = await opened(t, server.url, { requests: 1 });
  hangs = true;
  const aborted = new AbortController();
  const running = encoder.encode(['a'], { inputType: 'query', signal: aborted.signal });
  const waiting = encoder.encode(['b'], { inputType: 'query' });
  await reached;
  aborted.abort();
  await assert.rejects(running, trawlError('CANCELLED'));
  await encoder.close();
  await assert.rejects(waiting, trawlError('CANCELLED'));
  await assert.rejects(encoder.encode(['c'], { inputType: 'query' }), trawlError('CANCELLED'));
});
