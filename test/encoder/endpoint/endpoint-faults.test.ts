import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeVector, encodeVector } from '../../../src/base/base64-vector.ts';
import { TrawlError } from '../../../src/base/errors.ts';
import { EndpointWatch } from '../../../src/encoder/endpoint/endpoint-watch.ts';
import { openEndpoint } from '../../../src/encoder/endpoint/open-endpoint.ts';
import { storedProbes } from '../../../src/encoder/endpoint/probes.ts';
import type { Probe } from '../../../src/encoder/identity/endpoint-record.ts';
import { ENDPOINT_DIMENSION, embeddingServer, endpointVector } from '../../helpers/embedding-server.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { opened } from './opened-endpoint.ts';

const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);

test('a vector that is not usable fails its own text alone, with advice', async (t) => {
  const nan = Buffer.alloc(4 * ENDPOINT_DIMENSION, 0xff).toString('base64');
  const nulls = new Array<null>(ENDPOINT_DIMENSION).fill(null);
  const zeros = new Array<number>(ENDPOINT_DIMENSION).fill(0);
  let embedding: unknown;
  const server = await embeddingServer(t, {
    change: (reply) =>
      embedding && { ...reply, data: reply.data.map((item, i) => (i === 2 ? { ...item, embedding } : item)) },
  });
  const encoder = await opened(t, server.url);
  for (const [bad, what] of [
    [nan, 'NaN in column 0'],
    [nulls, 'null in column 0'],
    [zeros, 'length 0.000'],
  ] as const) {
    embedding = bad;
    const { vectors, outcomes } = await encoder.encode(texts(4), { inputType: 'passage' });
    assert.deepEqual(
      outcomes.map(({ ok }) => ok),
      [true, true, false, true],
    );
    const failed = outcomes[2]!;
    assert.ok(!failed.ok && trawlError('ENDPOINT_FAILED', new RegExp(`${what}.*float16.*empty text`))(failed.error));
    assert.deepEqual([...vectors.subarray(3 * ENDPOINT_DIMENSION)], [...endpointVector('passage: text 3')]);
  }
});

test('the texts of a divided request are counted once', async (t) => {
  let isOpen = false;
  const server = await embeddingServer(t, {
    answer: ({ texts: own }, _count, response) =>
      isOpen && own.some((text) => text.includes('poison')) && Boolean(response.writeHead(400).end('{}')),
  });
  const encoder = await opened(t, server.url, { batchTexts: 4 });
  isOpen = true;
  await encoder.encode(['poison', 'b', 'c', 'd'], { inputType: 'passage' });
  const { texts: encoded, waitingTexts, droppedTexts } = encoder.load;
  assert.deepEqual([encoded, waitingTexts, droppedTexts], [4, 0, 0]);
});

test('a page that a starting server fails to send is asked for again, and is not taken for a missing one', async (t) => {
  let failures = 0;
  let code = 0;
  const server = await embeddingServer(t, {
    page: (path, response) => path === '/v1/models' && failures-- > 0 && Boolean(response.writeHead(code).end('{}')),
  });
  for (code of [408, 429, 500, 502, 503, 504]) {
    failures = 1;
    assert.equal((await opened(t, server.url)).identity.prefixes.query, 'query: ', `after ${code}`);
    failures = Number.POSITIVE_INFINITY;
    await assert.rejects(
      openEndpoint(server.url, { firstWaitMs: 1 }),
      trawlError('ENDPOINT_FAILED', new RegExp(`status ${code}, 2 times`)),
    );
  }
  for (code of [401, 403, 404, 405, 501]) {
    failures = Number.POSITIVE_INFINITY;
    assert.equal((await opened(t, server.url)).identity.name, 'endpoint', `${code}: the page is missing`);
  }
});

test('a request that one endpoint fails goes to another, and the first one pauses', async (t) => {
  let isBroken = false;
  const one = await embeddingServer(t);
  const two = await embeddingServer(t, {
    answer: (_asked, _count, response) => isBroken && Boolean(response.writeHead(500).end('{}')),
  });
  const encoder = await opened(t, `${one.url},${two.url}`, {
    requests: 2,
    batchTexts: 2,
    firstWaitMs: 60_000,
    maxWaitMs: 60_000,
  });
  isBroken = true;
  const before = two.asked.length;
  const { outcomes } = await encoder.encode(texts(40), { inputType: 'passage' });
  assert.ok(outcomes.every(({ ok }) => ok));
  assert.ok(two.asked.length - before <= 2, 'no more than run at the same time');
});

test('an endpoint that comes back with another model after a lost connection gives no vectors', async (t) => {
  let [seed, isLost] = ['', false];
  const server = await embeddingServer(t, {
    seed: () => seed,
    answer(_asked, _count, _response, request) {
      if (!isLost) return false;
      isLost = false;
      seed = 'other';
      return Boolean(request.socket.destroy());
    },
  });
  const encoder = await opened(t, server.url, { checkEveryMs: 60_000 });
  isLost = true;
  await assert.rejects(encoder.encode(['a'], { inputType: 'query' }), trawlError('MODEL_MISMATCH', /other vectors/));
  await assert.rejects(encoder.check(), trawlError('MODEL_MISMATCH'));
  seed = '';
  await encoder.check();
  assert.ok((await encoder.encode(['a'], { inputType: 'query' })).outcomes[0]!.ok);
});

const probeOf = (...values: number[]): Probe[] => [
  { name: 'query', inputType: 'query', text: 'a', vector: encodeVector(Float32Array.from(values)), tokens: 1 },
];

function watchOf(probe: (server: number) => Promise<Probe[]>, everyMs = 0): EndpointWatch {
  return new EndpointWatch(probeOf(1, 0), {
    everyMs,
    onChange: 'refuse',
    onWarning: () => undefined,
    shown: ['http://one', 'http://two'],
    probe,
  });
}

test('an endpoint is checked while one before it is away', async () => {
  const watch = watchOf(async (server) => {
    if (server === 0) throw new TrawlError('ENDPOINT_FAILED', 'away');
    return probeOf(0, 1);
  });
  await assert.rejects(watch.check(), trawlError('MODEL_MISMATCH', /http:\/\/two/));
  assert.equal(watch.failure?.code, 'MODEL_MISMATCH');
});

test('an encoder that was not used for an interval is checked before its next answer counts', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const checked: number[] = [];
  const watch = watchOf(async (server) => {
    checked.push(server);
    return probeOf(0, 1);
  }, 1000);
  t.after(() => watch.close());
  await watch.trusted(1);
  assert.deepEqual(checked, [], 'no check is due');
  t.mock.timers.tick(1001);
  await assert.rejects(watch.trusted(1), trawlError('MODEL_MISMATCH'));
  assert.deepEqual(checked, [1]);
});

test('probes are compared with a model folder as rows of the index: cut and normalised', async (t) => {
  const server = await embeddingServer(t, { length: 3 });
  const { identity } = await opened(t, server.url, { overrides: { dimension: 4, normalize: true } });
  for (const { vector } of storedProbes(identity)) {
    const row = decodeVector(vector!);
    assert.equal(row.length, 4);
    assert.ok(Math.abs(Math.hypot(...row) - 1) < 1e-6);
  }
});

test('vectors that are nearly normalised are normalised; others are said to be compared as they are', async (t) => {
  const nearly = await opened(t, (await embeddingServer(t, { length: 1.004 })).url);
  const { vectors } = await nearly.encode(['a'], { inputType: 'passage' });
  assert.ok(Math.abs(Math.hypot(...vectors) - 1) < 1e-6);
  const raw = await embeddingServer(t, { length: 3 });
  const warnings: string[] = [];
  const onWarning = (warning: string): number => warnings.push(warning);
  await opened(t, raw.url, { onWarning });
  assert.match(warnings.join(), /not normalised \(length 3\.00\).*--normalize yes/);
  warnings.length = 0;
  await opened(t, raw.url, { onWarning, overrides: { normalize: false } });
  assert.deepEqual(warnings, []);
});

test('a server that refuses base64 is asked for numbers from then on', async (t) => {
  const server = await embeddingServer(t, {
    answer: ({ body }, _count, response) =>
      body['encoding_format'] === 'base64' && Boolean(response.writeHead(422).end('{}')),
  });
  const encoder = await opened(t, server.url);
  const { vectors } = await encoder.encode(['a'], { inputType: 'query' });
  assert.deepEqual([...vectors], [...endpointVector('query: a')]);
  assert.equal(server.asked.filter(({ body }) => body['encoding_format'] === 'base64').length, 1);
});

test('prefixes are refused for a Trawl server, which adds its own', async (t) => {
  const pages = { '/v1/models': { data: [{ id: 'e5', owned_by: 'trawl' }] } };
  const server = await embeddingServer(t, { pages });
  for (const overrides of [{ queryPrefix: 'q: ' }, { passagePrefix: 'p: ' }]) {
    await assert.rejects(openEndpoint(server.url, { overrides }), trawlError('CONFIG_INVALID', /adds the prefixes/));
  }
  await opened(t, server.url, { overrides: { queryPrefix: '', passagePrefix: '' } });
});

test('a reply that is far larger than its vectors is not read', async (t) => {
  let padding = '';
  const server = await embeddingServer(t, { change: (reply) => ({ ...reply, padding }) });
  const encoder = await opened(t, server.url);
  padding = 'x'.repeat(2 * 1024 * 1024);
  const [outcome] = (await encoder.encode(['a'], { inputType: 'query' })).outcomes;
  assert.ok(outcome?.ok === false && trawlError('ENDPOINT_FAILED', /a reply of more than \d+ bytes/)(outcome.error));
});

test('endpoints of which one refuses long texts and the other truncates them are named', async (t) => {
  const [one, two] = [await embeddingServer(t), await embeddingServer(t, { refusesLong: true })];
  const warnings: string[] = [];
  await opened(t, `${one.url},${two.url}`, { onWarning: (warning) => warnings.push(warning) });
  assert.match(warnings.join(), /one truncates texts.*the other refuses them/);
});

test('a server that answers 500 to a text beyond its batch, as llama.cpp does, embeds every other text', async (t) => {
  const message = 'input is too large to process. increase the physical batch size';
  const server = await embeddingServer(t, {
    answer: ({ texts: own }, _count, response) =>
      own.some((text) => text.split(' ').length > 512) &&
      Boolean(response.writeHead(500).end(JSON.stringify({ error: { code: 500, message, type: 'server_error' } }))),
  });
  const encoder = await opened(t, server.url);
  assert.equal(encoder.identity.endpoint!.overlong, 'refused');
  const inputs = [...texts(5), 'long '.repeat(600), ...texts(4)];
  const { outcomes, vectors } = await encoder.encode(inputs, { inputType: 'passage' });
  assert.deepEqual(
    outcomes.map(({ ok }) => ok),
    inputs.map((_, i) => i !== 5),
  );
  const failed = outcomes[5]!;
  assert.ok(!failed.ok && trawlError('ENDPOINT_FAILED', /status 500 \("input is too large to process/)(failed.error));
  assert.deepEqual([...vectors.subarray(9 * ENDPOINT_DIMENSION)], [...endpointVector('passage: text 3')]);
});

test('a probe that is refused decides nothing about other texts; an endpoint that refuses every short one is refused', async (t) => {
  let refused = /Vienna.*$/;
  const server = await embeddingServer(t, {
    answer: ({ texts: own }, _count, response) =>
      own.some((text) => refused.test(text)) && Boolean(response.writeHead(422).end('{"detail":"not this text"}')),
  });
  refused = /[^ -~]/;
  const encoder = await opened(t, server.url);
  const without = encoder.identity.endpoint!.probes.flatMap(({ name, vector }) => (vector === null ? [name] : []));
  assert.deepEqual(without, ['scripts', 'spaces']);
  assert.notEqual(encoder.identity.endpoint!.overlong, 'refused');
  assert.ok((await encoder.encode(['a'], { inputType: 'passage' })).outcomes[0]!.ok);
  refused = /.{5}/s;
  await assert.rejects(
    openEndpoint(server.url, { overrides: { queryPrefix: '', passagePrefix: '' } }),
    trawlError('ENDPOINT_FAILED', /status 422 \("not this text"\)/),
  );
});

test('an empty text that an endpoint refuses, or gives no vector, is embedded as a space, with a warning', async (t) => {
  for (const isRefused of [true, false]) {
    const server = await embeddingServer(t, {
      answer: ({ texts: own }, _count, response) =>
        isRefused && own.includes('') && Boolean(response.writeHead(400).end('{"error":"empty"}')),
      change: (reply, { texts: own }) => ({
        ...reply,
        data: reply.data.map((item, i) => (own[i] === '' ? { ...item, embedding: [] } : item)),
      }),
    });
    const warnings: string[] = [];
    const overrides = { queryPrefix: '', passagePrefix: '' };
    const onWarning = (warning: string): number => warnings.push(warning);
    const encoder = await opened(t, server.url, { overrides, onWarning });
    const { outcomes, vectors } = await encoder.encode(['a', '', 'b', '\n'], { inputType: 'passage' });
    assert.ok(outcomes.every(({ ok }) => ok));
    assert.deepEqual([...vectors.subarray(ENDPOINT_DIMENSION, 2 * ENDPOINT_DIMENSION)], [...endpointVector(' ')]);
    assert.deepEqual([...vectors.subarray(3 * ENDPOINT_DIMENSION)], [...endpointVector('\n')], 'it was not refused');
    assert.deepEqual(warnings, ['The endpoint refuses empty texts. They are embedded as a space.']);
  }
});

test('requests become smaller after one was refused for the number of its texts', async (t) => {
  const server = await embeddingServer(t, {
    answer: ({ texts: own }, _count, response) => own.length > 4 && Boolean(response.writeHead(413).end('too many')),
  });
  const encoder = await opened(t, server.url, { batchTexts: 16 });
  assert.ok((await encoder.encode(texts(16), { inputType: 'passage' })).outcomes.every(({ ok }) => ok));
  const before = server.asked.length;
  await encoder.encode(texts(16), { inputType: 'passage' });
  assert.deepEqual(
    server.asked.slice(before).map(({ texts: own }) => own.length),
    [4, 4, 4, 4],
  );
});

test('a message has the reason of a server, cut and in one line, without key and without the text', async (t) => {
  const key = 'token-4711-secret';
  const text = 'who was the first empress of the Danube';
  const long = `it is ${'very '.repeat(100)}long`;
  for (const [reply, shown] of [
    [{ error: { message: 'maximum context\n length is 512', type: 'x' } }, '"maximum context length is 512"'],
    [{ error: 'batch size 33 > maximum', error_type: 'Validation' }, '"batch size 33 > maximum"'],
    [{ detail: [{ loc: ['body'], msg: 'Field required', input: text }] }, '"Field required"'],
    [{ object: 'error', message: `Incorrect API key: ${key}` }, '"Incorrect API key: …"'],
    [{ error: { message: 'Incorrect API key provided: sk-proj-abc***xyz.' } }, '"Incorrect API key provided: …"'],
    [{ error: `cannot embed "${text}" here` }, '"cannot embed \\"…\\" here"'],
    [{ error: `cannot embed ${text.slice(8, 24)}… here` }, '"cannot embed…… here"'],
    ['plain words', '"plain words"'],
    [{ error: long }, `"${long.slice(0, 200).trimEnd()}…"`],
    [{ error: text }, undefined],
    ['<html>private</html>', undefined],
    [{}, undefined],
    [{ error: null, message: null }, undefined],
    ['', undefined],
  ] as const) {
    let isOpen = false;
    const server = await embeddingServer(t, {
      answer: (_asked, _count, response) =>
        isOpen && Boolean(response.writeHead(400).end(typeof reply === 'string' ? reply : JSON.stringify(reply))),
    });
    const encoder = await opened(t, server.url, { apiKey: key });
    isOpen = true;
    const [outcome] = (await encoder.encode([text], { inputType: 'query' })).outcomes;
    assert.ok(outcome?.ok === false);
    assert.equal(outcome.error.details.fault, 'status 400', 'what HTTP clients learn');
    assert.equal(
      /status 400(?: \((.*)\))?\. It refuses/.exec(outcome.error.message)?.[1],
      shown,
      JSON.stringify(reply),
    );
  }
});
