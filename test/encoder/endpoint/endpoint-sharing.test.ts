import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { EndpointClients } from '../../../src/encoder/endpoint/endpoint-client.ts';
import type { EndpointEncoder } from '../../../src/encoder/endpoint/endpoint-encoder.ts';
import { EndpointWatch } from '../../../src/encoder/endpoint/endpoint-watch.ts';
import { openEndpoint } from '../../../src/encoder/endpoint/open-endpoint.ts';
import { type EmbeddingServer, embeddingServer } from '../../helpers/embedding-server.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { opened } from './opened-endpoint.ts';

const texts = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);
const until = async (is: () => boolean): Promise<void> => {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 2));
};

test('encoders of one server share a client: the probes are embedded once, and the bound holds for all together', async (t) => {
  const server = await embeddingServer(t, { delayMs: 3 });
  const clients = new EndpointClients();
  const options = { clients, answersSince: 0, requests: 2, batchTexts: 2 };
  const encoders = [
    ...(await Promise.all([opened(t, server.url, options), opened(t, server.url, options)])),
    await opened(t, server.url, options),
  ];
  assert.equal(server.asked.length, 9, 'a trial and eight probes');
  await Promise.all(encoders.map((encoder) => encoder.encode(texts(20), { inputType: 'passage' })));
  assert.equal(server.running.most, 2);
  const other = await opened(t, server.url, { ...options, overrides: { queryPrefix: '', passagePrefix: '' } });
  assert.equal(server.asked.length, 9 + 30 + 9, 'other prompts have other probes');
  assert.equal(other.identity.prefixes.query, '');
  const apart = await opened(t, server.url, { ...options, apiKey: 'another' });
  await apart.encode(['a'], { inputType: 'query' });
  assert.equal(server.asked.at(-1)!.authorization, 'Bearer another');
});

test('closing an encoder cancels its own texts and leaves the shared client to the others', async (t) => {
  let hangs = false;
  const server = await embeddingServer(t, { answer: () => hangs });
  const clients = new EndpointClients();
  const [one, two] = [await opened(t, server.url, { clients }), await opened(t, server.url, { clients })];
  hangs = true;
  const running = one.encode(['a'], { inputType: 'query' });
  const before = server.asked.length;
  await until(() => server.asked.length > before);
  await one.close();
  await assert.rejects(running, trawlError('CANCELLED'));
  hangs = false;
  assert.ok((await two.encode(['a'], { inputType: 'query' })).outcomes[0]!.ok);
  await one.close();
  await two.close();
  const three = await opened(t, server.url, { clients });
  assert.ok((await three.encode(['a'], { inputType: 'query' })).outcomes[0]!.ok, 'the last close ends the client');
});

test('the refused settings of one encoder leave the numbers to another on a server that refuses base64', async (t) => {
  let trials = 0;
  let [otherIsOpening, isOpen] = [(): void => undefined, (): void => undefined];
  const opening = new Promise<void>((resolve) => (otherIsOpening = resolve));
  const open = new Promise<void>((resolve) => (isOpen = resolve));
  const server = await embeddingServer(t, {
    answer({ body }, _count, response) {
      const refuse = (): void => void response.writeHead(400).end('{}');
      if (body['unknown'] === true && body['encoding_format'] === 'float') {
        // Refused only once the other encoder has learnt that the server wants numbers.
        otherIsOpening();
        void open.then(refuse);
        return true;
      }
      if (body['encoding_format'] !== 'base64' && body['unknown'] !== true) return false;
      trials++;
      refuse();
      return true;
    },
  });
  const clients = new EndpointClients();
  const refused = assert.rejects(
    openEndpoint(server.url, { clients, firstWaitMs: 1, passageRequest: { unknown: true } }),
    trawlError('ENDPOINT_FAILED'),
  );
  await opening;
  const encoder = await opened(t, server.url, { clients });
  isOpen();
  await refused;
  assert.ok((await encoder.encode(['b'], { inputType: 'passage' })).outcomes[0]!.ok);
  const later = await opened(t, server.url, { clients, answersSince: performance.now() });
  assert.ok((await later.encode(['c'], { inputType: 'query' })).outcomes[0]!.ok);
  assert.equal(trials, 2, 'each of the first two asked for base64 once');
});

test('an encoder that checks its endpoint asks again, and so does one after a lost connection', async (t) => {
  let [seed, isLost] = ['', false];
  const server = await embeddingServer(t, {
    seed: () => seed,
    answer(_asked, _count, _response, request) {
      if (!isLost) return false;
      isLost = false;
      return Boolean(request.socket.destroy());
    },
  });
  const clients = new EndpointClients();
  const one = await opened(t, server.url, { clients });
  const two = await opened(t, server.url, { clients, checkEveryMs: 3_600_000 });
  seed = 'other';
  await assert.rejects(one.check(), trawlError('MODEL_MISMATCH'));
  await assert.rejects(two.check(), trawlError('MODEL_MISMATCH'));
  seed = '';
  await Promise.all([one.check(), two.check()]);
  isLost = true;
  await one.encode(['a'], { inputType: 'query' });
  seed = 'other';
  await assert.rejects(two.encode(['b'], { inputType: 'query' }), trawlError('MODEL_MISMATCH'), 'it was lost for both');
  const recorded = one.identity;
  const later = await opened(t, server.url, { clients, recorded, answersSince: 0 });
  assert.notDeepEqual(
    later.identity.endpoint!.probes,
    recorded.endpoint!.probes,
    'asked after the connection was lost',
  );
});

test('encoders of one interval check at the same time, so that they share the probes', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const times: number[] = [];
  const watches = [0, 1].map(
    () =>
      new EndpointWatch([], {
        everyMs: 1000,
        onChange: 'refuse',
        onWarning: () => undefined,
        shown: ['http://one'],
        probe: async (_server, { since }) => {
          times.push(since);
          return [];
        },
      }),
  );
  t.after(() => watches.forEach((watch) => void watch.close()));
  for (const watch of watches) watch.used();
  t.mock.timers.tick(1001);
  assert.equal(times.length, 2);
  assert.ok(times.every((time) => time % 1000 === 0));
});

/** A server that answers nothing from a step of the opening on. */
async function hangingServer(
  t: TestContext,
  at: 'pages' | 'trial' | 'probes',
): Promise<{ server: EmbeddingServer; hangs: Promise<void> }> {
  let hang = (): void => undefined;
  const hangs = new Promise<void>((resolve) => (hang = resolve));
  const isHanging = (is: boolean): boolean => {
    if (is) hang();
    return is;
  };
  const server = await embeddingServer(t, {
    page: () => isHanging(at === 'pages'),
    answer: (_asked, count) => isHanging(at === 'trial' || (at === 'probes' && count > 3)),
  });
  return { server, hangs };
}

test('an opening is aborted at each of its steps, also while a server pauses, and others go on', async (t) => {
  for (const at of ['pages', 'trial', 'probes'] as const) {
    const { server, hangs } = await hangingServer(t, at);
    const stop = new AbortController();
    const opening = openEndpoint(server.url, { signal: stop.signal });
    await Promise.all([hangs.then(() => stop.abort()), assert.rejects(opening, trawlError('CANCELLED'), at)]);
  }
  let asked = (): void => undefined;
  const wasAsked = new Promise<void>((resolve) => (asked = resolve));
  const busy = await embeddingServer(t, {
    page(_path, response) {
      response.writeHead(429, { 'retry-after': '3600' }).end();
      asked();
      return true;
    },
  });
  const stop = new AbortController();
  const opening = openEndpoint(busy.url, { signal: stop.signal, maxWaitMs: 3_600_000 });
  await Promise.all([wasAsked.then(() => stop.abort()), assert.rejects(opening, trawlError('CANCELLED'))]);
  await assert.rejects(openEndpoint(busy.url, { signal: AbortSignal.abort() }), trawlError('CANCELLED'));
  const clients = new EndpointClients();
  const server = await embeddingServer(t, { delayMs: 5 });
  const first = new AbortController();
  const [stopped, other] = [
    openEndpoint(server.url, { clients, signal: first.signal }),
    opened(t, server.url, { clients }),
  ];
  first.abort();
  await assert.rejects(stopped, trawlError('CANCELLED'));
  assert.ok((await (await other).encode(['a'], { inputType: 'query' })).outcomes[0]!.ok);
});

test('text-embeddings-inference is asked at its own route although it has /v1/embeddings, and the index keeps its route', async (t) => {
  const pages = {
    '/info': { model_id: 'm', model_type: { embedding: {} }, max_input_length: 600, version: '1.8.0' },
  };
  const server = await embeddingServer(t, { routes: ['openai', 'tei'], pages });
  const own = await opened(t, server.url);
  assert.equal(own.identity.endpoint!.api, 'tei');
  assert.ok(server.asked.every(({ path, body }) => path === '/embed' && body['truncate'] === true));
  const asked = await opened(t, server.url, { api: 'openai' });
  assert.equal(asked.identity.endpoint!.api, 'openai');
  const paths = async (recorded: EndpointEncoder): Promise<string> => {
    const encoder = await opened(t, server.url, { recorded: recorded.identity });
    await encoder.encode(['a'], { inputType: 'query' });
    return server.asked.at(-1)!.path;
  };
  assert.deepEqual([await paths(own), await paths(asked)], ['/embed', '/v1/embeddings']);
  const gone = await embeddingServer(t, { routes: ['openai'], pages });
  assert.equal((await opened(t, gone.url)).identity.endpoint!.api, 'openai', 'a gateway that has OpenAI’s route alone');
});

test('the calls that keep an endpoint busy are bounded by the requests, whatever the batch', async (t) => {
  const server = await embeddingServer(t);
  const calls = async (batchTexts: number): Promise<number> =>
    (await opened(t, server.url, { requests: 8, batchTexts })).busyCalls(256);
  assert.deepEqual([await calls(32), await calls(100), await calls(256), await calls(2048)], [2, 6, 16, 16]);
});
