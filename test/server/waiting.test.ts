import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ModelFolder } from '../../src/encoder/model/model-folder.ts';
import { openModelEncoder } from '../../src/encoder/open-encoder.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import { IndexRetriever, type ServingOptions } from '../../src/search/index-retriever.ts';
import { AnswerCache } from '../../src/search/layers/answer-cache.ts';
import type { OpenRetriever } from '../../src/search/retriever.ts';
import { NO_STATISTICS } from '../../src/search/retriever-statistics.ts';
import type { StageTimings } from '../../src/search/timings.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { normalRows, writeSource } from '../engine/vectors/index-files.ts';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { FakeStore } from '../search/fakes.ts';
import { build, errorOf, eventually, openSocket, post, postTo, serve } from './build.ts';

const ROWS = 5;
const HEADERS = { 'content-type': 'application/json' };

/**
 * A retriever with a fake model and fake passages: in `fake-encoder-worker.ts` the vector of a text is its length, and
 * "sleep <ms>" takes that long.
 */
async function openParts(
  t: TestContext,
  options: ServingOptions & { seed?: number } = {},
): Promise<{ retriever: OpenRetriever; expected(text: string, k: number): Promise<{ row: number; score: number }[]> }> {
  const { seed = 1, ...meeting } = options;
  const prefixes = { query: '', passage: '' };
  const identity = { name: 'fake', dimension: 2, prefixes, maxTokens: { query: 32, passage: 32 } };
  const encoder = await openModelEncoder({
    model: { identity, graphPath: '', externalData: [] as readonly string[] } as ModelFolder,
    workers: 1,
    workerUrl: new URL('../encoder/fake-encoder-worker.js', import.meta.url),
  });
  const index = await openEngine(await writeSource(await tempFolder(t), normalRows(ROWS, 2, seed)), { threads: 1 });
  const info = { ...new FakeRetriever().info, rows: ROWS, dimension: 2, generation: `generation-${seed}` };
  const retriever = new IndexRetriever(info, { dense: { encoder, index }, passages: new FakeStore([]) }, meeting);
  t.after(() => retriever.close());
  return {
    retriever,
    async expected(text, k) {
      const queries = new Float32Array(2).fill(text.length);
      const { rows, scores, counts } = await index.search({ queries, count: 1, k });
      return Array.from({ length: counts[0]! }, (_, i) => ({ row: rows[i]!, score: Math.fround(scores[i]!) }));
    },
  };
}

function ask(url: string, body: object, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
  const init = { method: 'POST', headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) };
  return fetch(`${url}/retrieve`, signal === undefined ? init : { ...init, signal });
}

/** Rows and scores of the lists of a reply. */
function hitsOf(json: unknown): { row: number; score: number }[][] {
  const { result } = json as { result: { document: { row: number }; score: number }[][] };
  return result.map((hits) => hits.map(({ document, score }) => ({ row: document.row, score })));
}

test('a single query is answered before a large POST that began earlier', async (t) => {
  const { retriever } = await openParts(t);
  const { url } = await serve(t, retriever);
  const ended: string[] = [];
  const queries = Array.from({ length: 400 }, (_, i) => `sleep 1 ${'x'.repeat(i % 40)}`);
  const big = ask(url, { queries }).then((response) => {
    ended.push(`big ${response.status}`);
    return response.arrayBuffer();
  });
  await eventually(() => retriever.statistics().encoder.texts > 0);
  const lone = await ask(url, { queries: ['lone'] });
  ended.push(`lone ${lone.status}`);
  await Promise.all([big, lone.arrayBuffer()]);
  assert.deepEqual(ended, ['lone 200', 'big 200']);
});

test('time in queues, and waiting for an equal query, is reported as queue', async (t) => {
  const { retriever } = await openParts(t);
  const timings = async (query: string): Promise<StageTimings> =>
    (await retriever.retrieve({ queries: [query], k: 1 })).timings;
  const first = timings('sleep 200');
  const [behind, equal] = await Promise.all([timings('sleep 20'), timings('sleep 200')]);
  assert.ok(behind.queue > 150 && behind.embed > 15 && behind.embed < behind.queue, JSON.stringify(behind));
  assert.ok(equal.queue > 150 && equal.embed === 0, JSON.stringify(equal));
  const { queue, embed } = await first;
  assert.ok(embed > 150 && queue < embed, JSON.stringify({ queue, embed }));
});

test('calls that wait for an equal query count towards the limit of waiting bytes', async (t) => {
  const { retriever } = await openParts(t, { maxWaitingBytes: 50_000 });
  const { url } = await serve(t, retriever);
  const asked = Array.from({ length: 60 }, () => ask(url, { queries: ['sleep 1500'] }));
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  assert.ok(statuses.includes(200) && statuses.includes(503), statuses.join(' '));
  assert.equal(retriever.statistics().sharing.computed, 1);
  assert.equal(retriever.statistics().waiting.bytes, 0);
});

test('concurrent clients, some of which disconnect, get the same results as alone', async (t) => {
  for (const options of [{}, { singleFlight: false }, { answerCache: new AnswerCache(1 << 20) }]) {
    const { retriever, expected } = await openParts(t, options);
    const { url } = await serve(t, retriever);
    const random = seededRandom(5);
    const wanted = new Map<string, { row: number; score: number }[]>();
    await Promise.all(
      Array.from({ length: 150 }, async () => {
        const count = random() < 0.05 ? 300 : 1 + Math.floor(random() * 3);
        const queries = Array.from({ length: count }, () => 'x'.repeat(1 + Math.floor(random() * 60)));
        const k = 1 + Math.floor(random() * 6);
        const controller = new AbortController();
        if (random() < 0.2) setTimeout(() => controller.abort(), random() * 60);
        let json: unknown;
        try {
          const body = { queries, topk: k, return_scores: true };
          const response = await ask(url, body, {}, controller.signal);
          assert.equal(response.status, 200);
          json = await response.json();
        } catch (error) {
          assert.ok(controller.signal.aborted, String(error));
          return;
        }
        for (const [i, hits] of hitsOf(json).entries()) {
          const name = `${queries[i]!.length} ${k}`;
          if (!wanted.has(name)) wanted.set(name, await expected(queries[i]!, k));
          assert.deepEqual(hits, wanted.get(name));
        }
      }),
    );
    await eventually(() => retriever.statistics().waiting.calls === 0);
    const { encoder, search } = retriever.statistics();
    assert.deepEqual([encoder.waitingTexts, search.waitingQueries], [0, 0]);
  }
});

test('queries of a client that disconnects leave the queue', async (t) => {
  const { retriever } = await openParts(t);
  const { url, port } = await serve(t, retriever);
  const socket = await openSocket(t, port);
  const body = JSON.stringify({ queries: Array.from({ length: 1_000 }, (_, i) => `sleep 2 ${i}`) });
  socket.write(
    `POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await eventually(() => retriever.statistics().encoder.texts > 0);
  socket.destroy();
  await eventually(() => retriever.statistics().encoder.droppedTexts > 0);
  assert.equal((await ask(url, { queries: ['after'] })).status, 200);
  const { encoder, waiting } = retriever.statistics();
  assert.ok(encoder.texts < 500, `${encoder.texts} texts were encoded`);
  assert.ok(encoder.texts + encoder.droppedTexts <= 1_001);
  assert.equal(waiting.calls, 0);
});

test('equal queries in flight are computed once, and with a cache also later ones', async (t) => {
  for (const answerCache of [undefined, new AnswerCache(1 << 20)]) {
    const { retriever, expected } = await openParts(t, { answerCache });
    const { url } = await serve(t, retriever);
    const busy = ask(url, { queries: ['sleep 800'] });
    await eventually(() => retriever.statistics().waiting.calls === 1);
    const body = { queries: ['the same'], return_scores: true };
    const asked = Array.from({ length: 30 }, () => ask(url, body));
    await eventually(() => retriever.statistics().sharing.queries === 31);
    const answers = await Promise.all((await Promise.all(asked)).map((response) => response.json()));
    for (const json of answers) assert.deepEqual(hitsOf(json), [await expected('the same', 3)]);
    await (await busy).arrayBuffer();
    assert.equal(retriever.statistics().encoder.texts, 2);
    assert.deepEqual(hitsOf(await (await ask(url, body)).json()), [await expected('the same', 3)]);
    assert.equal(retriever.statistics().encoder.texts, answerCache === undefined ? 3 : 2);
  }
});

test('after a reload the cache has no answers of the old index', async (t) => {
  const answerCache = new AnswerCache(1 << 20);
  const [old, next] = [await openParts(t, { answerCache, seed: 1 }), await openParts(t, { answerCache, seed: 2 })];
  assert.notDeepEqual(await old.expected('a', 3), await next.expected('a', 3));
  const holder = IndexRegistry.single(old.retriever);
  const app = build(t, holder);
  const body = { queries: ['a'], return_scores: true };
  for (let i = 0; i < 2; i++) assert.deepEqual(hitsOf((await post(app, body)).json), [await old.expected('a', 3)]);
  holder.ready(next.retriever);
  for (let i = 0; i < 2; i++) assert.deepEqual(hitsOf((await post(app, body)).json), [await next.expected('a', 3)]);
  assert.equal(next.retriever.statistics().sharing.cached, 1);
});

test('beyond the limit of waiting bytes every dialect answers 503 with Retry-After immediately', async (t) => {
  const { retriever } = await openParts(t, { maxWaitingBytes: 20_000 });
  const { app, url } = await serve(t, retriever);
  const controller = new AbortController();
  const queries = Array.from({ length: 200 }, (_, i) => `sleep 20 ${i}`);
  const big = ask(url, { queries }, {}, controller.signal).catch(() => undefined);
  await eventually(() => retriever.statistics().waiting.calls === 1);
  const refused = await ask(url, { queries: ['a'] });
  assert.equal(refused.status, 503);
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  assert.equal(errorOf(await refused.json()).code, 'OVERLOADED');
  const openai = await postTo(app, '/v1/embeddings', { input: 'a', model: 'fake-encoder' });
  assert.equal(openai.status, 503);
  assert.equal((openai.json as { error: { type: string } }).error.type, 'server_error');
  assert.equal(openai.headers['retry-after'], '2');
  const research = await postTo(app, '/search', { query: 'a' });
  assert.equal(research.status, 503);
  assert.equal(typeof (research.json as { detail: unknown }).detail, 'string');
  assert.equal(retriever.statistics().waiting.refused, 3);
  controller.abort();
  await big;
  await eventually(() => retriever.statistics().waiting.calls === 0);
  assert.equal((await ask(url, { queries: ['a'] })).status, 200);
});

test('cached answers are returned even if the queue is full or the wait too long', async (t) => {
  const { retriever } = await openParts(t, { maxWaitingBytes: 20_000, answerCache: new AnswerCache(1_000_000) });
  const { app, url } = await serve(t, retriever);
  const strict = build(t, retriever, { shedAfterMs: 1 });
  const known = { queries: ['known', 'known too'], topk: 2 };
  const before = (await post(app, known)).json;
  const controller = new AbortController();
  const queries = Array.from({ length: 200 }, (_, i) => `sleep 20 ${i}`);
  const big = ask(url, { queries }, {}, controller.signal).catch(() => undefined);
  await eventually(() => retriever.statistics().encoder.waitingTexts > 10);
  for (const each of [app, strict]) {
    assert.deepEqual((await post(each, known)).json, before);
    assert.equal((await post(each, { queries: ['known'], topk: 1 })).status, 200);
    // More hits than cached, and one of two queries not cached.
    assert.equal((await post(each, { queries: ['known'], topk: 3 })).status, 503);
    assert.equal((await post(each, { queries: ['known', 'unknown'], topk: 2 })).status, 503);
  }
  assert.equal((await postTo(strict, '/v1/embeddings', { input: 'known', model: 'fake-encoder' })).status, 503);
  controller.abort();
  await big;
});

test('a request waits until its client disconnects, unless it has a deadline', async (t) => {
  const aborted: unknown[] = [];
  const retriever = new FakeRetriever({
    before(call) {
      call.signal?.addEventListener('abort', () => aborted.push(call.queries[0]));
      return untilAborted(call);
    },
  });
  const [patient, strict] = [await serve(t, retriever), await serve(t, retriever, { deadlineMs: 40 })];
  for (const [{ url }, headers, ms] of [
    [patient, { 'x-request-timeout-ms': '30' }, 30],
    [strict, {}, 40],
    [strict, { 'x-request-timeout-ms': '50' }, 50],
  ] as const) {
    const response = await ask(url, { queries: [String(ms)] }, headers);
    assert.equal(response.status, 503);
    assert.match(response.headers.get('retry-after') ?? '', /^\d+$/);
    const { code, message } = errorOf(await response.json());
    assert.equal(code, 'DEADLINE_EXCEEDED');
    assert.match(message, new RegExp(`${ms} ms`));
  }
  assert.deepEqual(aborted, ['30', '40', '50']);
});

test('a deadline in the future changes nothing', async (t) => {
  const app = build(t, new FakeRetriever(), { deadlineMs: 60_000 });
  assert.equal((await post(app, { queries: ['a'] })).status, 200);
});

test('an invalid deadline is a 422 with the expected values', async (t) => {
  const app = build(t);
  for (const value of ['0', '-1', '1.5', 'soon', '', '1e3', '10000000000']) {
    const { status, json } = await post(app, { queries: ['a'] }, { ...HEADERS, 'x-request-timeout-ms': value });
    assert.equal(status, 422, value);
    assert.equal(errorOf(json).code, 'INVALID_REQUEST');
    assert.match(errorOf(json).message, /x-request-timeout-ms.*whole number/);
  }
});

test('while texts wait for the encoder, encoded queries are gathered into larger batches', async (t) => {
  const { retriever } = await openParts(t);
  const asked = Array.from({ length: 40 }, (_, i) => `sleep 2 ${'x'.repeat(i)}`);
  await Promise.all(asked.map((query) => retriever.retrieve({ queries: [query], k: 1 })));
  const { queries, batches } = retriever.statistics().search;
  assert.equal(queries, 40);
  assert.ok(batches <= 25, `${batches} batches`);
});

test('a listener with load shedding refuses requests that would wait too long, and another listener does not', async (t) => {
  let expectedWaitMs = 0;
  const statistics = () => ({ ...NO_STATISTICS, encoder: { ...NO_STATISTICS.encoder, expectedWaitMs } });
  const retriever = new FakeRetriever({ statistics });
  const [shedding, waiting] = [build(t, retriever, { shedAfterMs: 1_000 }), build(t, retriever)];
  assert.equal((await post(shedding, { queries: ['a'] })).status, 200);
  expectedWaitMs = 1_200;
  const refused = await post(shedding, { queries: ['a'] });
  assert.equal(refused.status, 503);
  assert.equal(refused.headers['retry-after'], '2');
  assert.equal(errorOf(refused.json).code, 'OVERLOADED');
  assert.match(errorOf(refused.json).message, /1200 ms.*1000 ms/);
  expectedWaitMs = 15_900;
  assert.equal(
    (await post(shedding, { queries: ['a'] })).headers['retry-after'],
    '15',
    'when the request may be accepted',
  );
  expectedWaitMs = 1e9;
  assert.equal((await post(shedding, { queries: ['a'] })).headers['retry-after'], '60');
  expectedWaitMs = 1_200;
  assert.equal((await post(waiting, { queries: ['a'] })).status, 200);
});

test('load shedding counts only the queues that a request joins', async (t) => {
  let [encoderMs, searchMs] = [0, 0];
  const statistics = () => ({
    ...NO_STATISTICS,
    encoder: { ...NO_STATISTICS.encoder, expectedWaitMs: encoderMs },
    search: { ...NO_STATISTICS.search, expectedWaitMs: searchMs },
  });
  const retriever = new FakeRetriever({ statistics });
  Object.assign(retriever, { info: { ...retriever.info, modes: ['dense', 'bm25'] } });
  const app = build(t, retriever, { shedAfterMs: 1_000 });
  const bm25ByDefault = build(t, retriever, { shedAfterMs: 1_000, mode: 'bm25' });
  const embedding = { input: 'a', model: retriever.info.model!.name };
  const statuses = async (): Promise<number[]> =>
    Promise.all([
      postTo(app, '/v1/search', { queries: ['a'] }),
      postTo(app, '/v1/search', { queries: ['a'], mode: 'bm25' }),
      post(bm25ByDefault, { queries: ['a'] }),
      postTo(app, '/v1/embeddings', embedding),
    ]).then((replies) => replies.map(({ status }) => status));
  [encoderMs, searchMs] = [600, 600];
  assert.deepEqual(await statuses(), [503, 200, 200, 200]);
  [encoderMs, searchMs] = [0, 5_000];
  assert.deepEqual(await statuses(), [503, 200, 200, 200]);
  [encoderMs, searchMs] = [5_000, 0];
  assert.deepEqual(await statuses(), [503, 200, 200, 503]);
  // Without a mode in the request, the index decides.
  Object.assign(retriever, { info: { ...retriever.info, modes: ['bm25', 'dense'] } });
  assert.equal((await post(app, { queries: ['a'] })).status, 200);
});

test('the expected wait grows with the queue', async (t) => {
  const { retriever } = await openParts(t);
  const controller = new AbortController();
  await retriever.retrieve({ queries: ['sleep 10', 'sleep 11'], k: 1 });
  const queries = Array.from({ length: 200 }, (_, i) => `sleep 10 ${i}`);
  const asked = retriever.retrieve({ queries, k: 1, signal: controller.signal });
  const { expectedWaitMs } = retriever.statistics().encoder;
  assert.ok(expectedWaitMs > 200 && expectedWaitMs < 200_000, `${expectedWaitMs} ms`);
  controller.abort();
  await assert.rejects(asked);
  assert.equal(retriever.statistics().encoder.expectedWaitMs, 0);
});
