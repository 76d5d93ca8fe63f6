import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { MessageChannel, Worker } from 'node:worker_threads';
import { TrawlError } from '../../src/base/errors.ts';
import { TrawlClient, TrawlConnectionError, TrawlResponseError } from '../../src/client/index.ts';
import { waitMs } from '../../src/client/retry.ts';
import type { FusedHit, Hit, Query, SearchReply } from '../../src/client/types.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import type { RecordedSearch } from '../../src/server/recording/recorded-search.ts';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { eventually, serve } from '../server/build.ts';
import { type ScriptedAnswer, scriptedServer } from './scripted-server.ts';

const SHORT = { retry: { attempts: 4, firstWaitMs: 1 } };
const INDEXES: ScriptedAnswer = { status: 200, body: { indexes: [] } };

/** undici's Agent: Node's fetch uses it but does not export it. Node.js 26 has it under the second name, and a wrapper under the first. */
const DISPATCHERS = ['undici.globalDispatcher.2', 'undici.globalDispatcher.1'].map((name) => Symbol.for(name));
type AgentClass = new (options: { headersTimeout: number }) => { close(): Promise<void> };

function refusal(status: number, code: string, retryAfter?: string): ScriptedAnswer {
  const headers = { 'x-request-id': 'r-1', ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }) };
  return { status, headers, body: { error: { code, message: 'Not now.' } } };
}

test('the package exports the client as trawl-retrieval/client', async (t) => {
  // A part of the bundle: another class of the same sources.
  const entry = (await import('trawl-retrieval/client' as string)) as typeof import('../../src/client/index.ts');
  assert.deepEqual(Object.keys(entry), Object.keys(await import('../../src/client/index.ts')));
  const { url } = await serve(t, new FakeRetriever());
  const { results } = await new entry.TrawlClient(url).search({ queries: ['a'], k: 2 });
  assert.equal(results[0]?.ok && results[0].hits?.length, 2);
});

test('a search has a typed result for each query, and a failing query fails alone', async (t) => {
  const retriever = new FakeRetriever({
    outcome: (input) => (input === 'bad' ? { ok: false, error: new TrawlError('ENCODING_FAILED', 'x') } : undefined),
  });
  const { url } = await serve(t, retriever);
  const client = new TrawlClient(url);
  const queries: readonly Query[] = ['a', 'bad', { query: 'b', question: 'c' }, { query: 'd' }];
  const reply: SearchReply = await client.search({ queries, k: 2, documents: true });
  assert.deepEqual(
    reply.results.map((result) => (result.ok ? result.embedded.text : result.error.code)),
    ['a', 'ENCODING_FAILED', 'c [SEP] b', 'd'],
  );
  const [first] = reply.results;
  assert.ok(first?.ok === true);
  const hits: Hit[] = first.hits ?? [];
  assert.equal(hits.length, 2);
  assert.ok(hits[0]!.score >= hits[1]!.score);
  assert.equal(hits[0]!.document?.id, hits[0]!.id);
  assert.equal(reply.hits, undefined);
  assert.deepEqual((await client.search(['a'])).results.length, 1);
});

test('a fused search leaves out excluded passages', async (t) => {
  const { url } = await serve(t, new FakeRetriever());
  const reply = await new TrawlClient(url).search({ queries: ['a', 'b'], k: 3, fuse: 'rrf', exclude: ['0', 3] });
  const hits: FusedHit[] = reply.hits ?? [];
  assert.equal(hits.length, 3);
  assert.ok(hits.every(({ id, from }) => id !== '0' && id !== 3 && from.length > 0));
});

test('passages, indexes, vectors and Search-R1’s request return what the server has', async (t) => {
  const { url } = await serve(t, new FakeRetriever());
  const client = new TrawlClient(`${url}/`);
  assert.equal((await client.passage('s-1')).document.contents, '"Brooklyn Bridge"\nA bridge in New York.');
  assert.equal((await client.passage(3)).row, 3);
  const [index] = await client.indexes();
  assert.deepEqual(
    [index!.name, index!.model!.name, index!.model!.maxTokens.query],
    ['fake-sample', 'fake-encoder', 256],
  );
  const [query, text] = await client.embed(['one', 'ä']);
  assert.deepEqual([...query!], [10, 'q'.charCodeAt(0), 'u'.charCodeAt(0), 'e'.charCodeAt(0)]);
  assert.equal(text![0], 8);
  const [passage] = await client.embed(['one'], { inputType: 'passage', model: 'fake-encoder' });
  assert.equal(passage![1], 'p'.charCodeAt(0));
  assert.deepEqual(await client.embed(['one'], { inputType: 'passage' }), [passage]);
  assert.deepEqual(await client.embed([]), []);
  assert.equal((await client.embed(Array.from({ length: 2_050 }, () => 'x'))).length, 2_050);
  const [documents] = await client.retrieve(['a'], { topk: 2, questions: ['b'] });
  assert.deepEqual(
    documents!.map((hit) => Object.keys(hit)),
    [
      ['document', 'score'],
      ['document', 'score'],
    ],
  );
  assert.deepEqual(await client.retrieve([]), []);
});

test('the groups of a server have their names and those of their indexes', async (t) => {
  const slots = ['a', 'b'].map((name) => new IndexSlot(name, { folder: name }, async () => new FakeRetriever()));
  const holder = new IndexRegistry(slots, new Map([['ab', ['a', 'b']]]));
  await holder.open();
  const client = new TrawlClient((await serve(t, holder)).url);
  assert.deepEqual(await client.groups(), [{ name: 'ab', indexes: ['a', 'b'] }]);
  assert.deepEqual(
    (await client.indexes()).map(({ name }) => name),
    ['a', 'b'],
  );
  const single = new TrawlClient((await serve(t, new FakeRetriever())).url);
  assert.deepEqual(await single.groups(), []);
});

test('a call says where its queries come from', async (t) => {
  const recorded: RecordedSearch[] = [];
  const record = { record: (_request: object, search: RecordedSearch) => void recorded.push(search) };
  const { url } = await serve(t, new FakeRetriever(), { record });
  const client = new TrawlClient(url);
  const origin = { trajectory: ['a', null], turn: 2, questionId: 7, tags: { arm: 'b' } };
  await client.search({ queries: ['x', 'y'], record: origin });
  await client.retrieve(['x', 'y'], { record: origin });
  const rest = { turn: 2, questionId: '7', tags: { arm: 'b' } };
  for (const { origins } of recorded) assert.deepEqual(origins, [{ trajectory: 'a', ...rest }, rest]);
  assert.equal(recorded.length, 2);
});

test('an error reply has a status, a code and a request id, and its call is not repeated', async (t) => {
  const { url } = await serve(t, new FakeRetriever());
  const client = new TrawlClient(url);
  const refused = (status: number, code: string) => (error: unknown) => {
    assert.ok(error instanceof TrawlResponseError);
    assert.deepEqual([error.status, error.code, typeof error.requestId], [status, code, 'string']);
    return true;
  };
  await assert.rejects(client.passage('no/such?'), refused(404, 'NOT_FOUND'));
  await assert.rejects(client.search({ queries: ['a'], k: 100_000 }), refused(422, 'K_TOO_LARGE'));
  await assert.rejects(client.search({ queries: ['a'], maxChars: 1 }), refused(422, 'INVALID_REQUEST'));
  await assert.rejects(client.embed(['a'], { model: 'other' }), refused(404, 'model_not_found'));
  for (const status of [400, 404, 422, 429, 500, 501]) {
    const { url: scripted, requests } = await scriptedServer(t, refusal(status, 'ANY'));
    await assert.rejects(new TrawlClient(scripted, SHORT).indexes(), refused(status, 'ANY'));
    assert.equal(requests.length, 1);
  }
});

test('a call is repeated after a 503 and after a lost connection, up to the given number of attempts', async (t) => {
  for (const [answers, requests, error] of [
    [[refusal(503, 'NOT_READY'), refusal(503, 'OVERLOADED', '0'), INDEXES], 3, undefined],
    [[{ status: 0 }, { ...INDEXES, half: true }, INDEXES], 3, undefined],
    [[refusal(503, 'OVERLOADED', '0')], 4, TrawlResponseError],
    [[{ status: 0 }], 4, TrawlConnectionError],
  ] as const) {
    const scripted = await scriptedServer(t, ...answers);
    const asked = new TrawlClient(scripted.url, SHORT).indexes();
    if (error === undefined) assert.deepEqual(await asked, []);
    else await assert.rejects(asked, error);
    assert.equal(scripted.requests.length, requests);
  }
});

test('a call that timed out is not repeated', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { url } = await serve(t, retriever);
  await fetch(`${url}/livez`);
  const known = globalThis as unknown as Record<symbol, { constructor: AgentClass } | undefined>;
  const { constructor: Agent } = DISPATCHERS.map((name) => known[name]).find((dispatcher) => dispatcher !== undefined)!;
  const dispatcher = new Agent({ headersTimeout: 200 });
  t.after(() => dispatcher.close());
  const impatient: typeof fetch = (input, init) => fetch(input, { ...init, dispatcher } as RequestInit);
  const client = new TrawlClient(url, { ...SHORT, fetch: impatient });
  await assert.rejects(client.search(['a']), TrawlConnectionError);
  assert.equal(retriever.calls.length, 1);
});

test('the wait before a retry follows retry-after, or else doubles, up to the maximum', () => {
  const retry = { firstWaitMs: 500, maxWaitMs: 4_000 };
  assert.equal(waitMs(0, '3', retry), 3_000);
  assert.equal(waitMs(0, '600', retry), 4_000);
  assert.equal(waitMs(5, '0', retry), 0);
  assert.equal(waitMs(0, new Date(Date.now() - 60_000).toUTCString(), retry), 0);
  assert.equal(waitMs(0, new Date(Date.now() + 60_000).toUTCString(), retry), 4_000);
  for (const strange of ['soon', '-1', '', '²', '1e3', '1.5']) assert.ok(waitMs(0, strange, retry) <= 500, strange);
  for (const [attempt, longest] of [500, 1_000, 2_000, 4_000, 4_000].entries()) {
    const wait = waitMs(attempt, null, retry);
    assert.ok(wait >= longest / 2 && wait <= longest);
  }
  assert.ok(waitMs(100_000, null, retry) <= 4_000);
});

test('clients in worker threads read only answers to their own requests', async (t) => {
  const documents = Array.from({ length: 200 }, (_, i) => JSON.stringify({ id: `w-${i}`, contents: 'x' }));
  const { url } = await serve(t, new FakeRetriever({ documents }));
  const program = `
    const { parentPort, workerData } = require('node:worker_threads');
    import(workerData.module).then(async ({ TrawlClient }) => {
      const client = new TrawlClient(workerData.url);
      const ids = Array.from({ length: 50 }, (_, i) => 'w-' + (4 * i + workerData.worker));
      const passages = await Promise.all(ids.map((id) => client.passage(id)));
      parentPort.postMessage(passages.filter(({ document }, i) => document.id !== ids[i]).length);
    });`;
  const module = new URL('../../src/client/index.js', import.meta.url).href;
  // The client of this thread has open connections.
  await new TrawlClient(url).passage('w-0');
  const workers = [0, 1, 2, 3].map(
    (worker) => new Worker(program, { eval: true, workerData: { module, url, worker } }),
  );
  const wrong = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0] as number));
  assert.deepEqual(wrong, [0, 0, 0, 0]);
});

test('a client that is posted to another thread or cloned is refused at once', () => {
  const client = new TrawlClient();
  const { port1, port2 } = new MessageChannel();
  const uncloneable = { name: 'DataCloneError', message: /makeAClientInEachThread/ };
  assert.throws(() => structuredClone(client), uncloneable);
  assert.throws(() => structuredClone({ clients: [client] }), uncloneable);
  assert.throws(() => port1.postMessage(client), uncloneable);
  assert.throws(() => new Worker('', { eval: true, workerData: client }), uncloneable);
  assert.equal(JSON.stringify({ client }), '{"client":{}}');
  port1.close();
  port2.close();
});

test('big integers, typed arrays and sets are sent as JSON has them; a number that JSON lacks is refused', async (t) => {
  const { url, requests } = await scriptedServer(t, INDEXES);
  const client = new TrawlClient(url, SHORT);
  const others = { scores: Float32Array.of(0.5, -1), seen: new Set([1, 2]), depth: 3n };
  const request = { queries: ['a'], exclude: [7n, 2n ** 53n + 1n, '7'], others };
  await client.search(request);
  assert.deepEqual(requests[0]!.body, {
    queries: ['a'],
    exclude: [7, '9007199254740993', '7'],
    others: { scores: [0.5, -1], seen: [1, 2], depth: 3 },
  });
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY]) {
    await assert.rejects(client.search({ queries: ['a'], minScore: wrong }), {
      name: 'TypeError',
      message: `minScore is ${wrong}; expected a finite number.`,
    });
    await assert.rejects(client.retrieve(['a'], { topk: wrong }), TypeError);
  }
  assert.equal(requests.length, 1);
  const { url: real } = await serve(t, new FakeRetriever());
  const { results } = await new TrawlClient(real).search({ queries: ['a'], k: 5, exclude: [2n ** 53n + 1n, 3n] });
  assert.deepEqual(
    results.map((result) => result.ok && result.hits?.map(({ id }) => String(id)).toSorted()),
    [['0', '4', 's-1']],
  );
});

test('an aborted call rejects with the signal’s reason, is cancelled in the server and is not repeated', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const { url } = await serve(t, retriever);
  const gone = new AbortController();
  const asked = new TrawlClient(url, SHORT).search(['a'], { signal: gone.signal });
  await eventually(() => retriever.calls.length === 1);
  const reason = new Error('the reader left');
  gone.abort(reason);
  await assert.rejects(asked, reason);
  await eventually(() => retriever.calls[0]?.signal?.aborted === true);
  assert.equal(retriever.calls.length, 1);
});

test('an aborted call ends also if fetch, or the reading of the body, never settles', async () => {
  const reason = new Error('the run ended');
  const silent = new Promise<never>(() => undefined);
  const headersAlone = new Response(new ReadableStream({ pull: () => silent }), { status: 200 });
  for (const answer of [silent, Promise.resolve(headersAlone)]) {
    const gone = new AbortController();
    let calls = 0;
    const client = new TrawlClient('http://127.0.0.1:9', {
      ...SHORT,
      fetch: () => {
        calls++;
        setImmediate(() => gone.abort(reason));
        return answer;
      },
    });
    await assert.rejects(client.search(['a'], { signal: gone.signal }), reason);
    assert.equal(calls, 1);
  }
});

test('an abort ends the wait before the next attempt', async (t) => {
  const { url, requests } = await scriptedServer(t, refusal(503, 'OVERLOADED', '30'));
  const gone = new AbortController();
  const asked = new TrawlClient(url).indexes({ signal: gone.signal });
  await eventually(() => requests.length === 1);
  gone.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  assert.equal(requests.length, 1);
});

test('waitUntilReady waits while the server starts, at most timeoutMs', async (t) => {
  const holder = new IndexRegistry();
  const { url } = await serve(t, holder);
  const client = new TrawlClient(url);
  const { ready, status, facts } = await client.ready();
  assert.deepEqual([ready, status, facts.progress], [false, 'starting', 'starting']);
  await assert.rejects(client.waitUntilReady({ timeoutMs: 20, pollMs: 5 }), /not ready after 20 ms: starting/);
  const waiting = client.waitUntilReady({ pollMs: 5 });
  holder.ready(new FakeRetriever());
  assert.equal((await waiting).facts.index, 'fake-sample');
  const nowhere = new TrawlClient('http://127.0.0.1:9', SHORT);
  await assert.rejects(nowhere.waitUntilReady({ timeoutMs: 20, pollMs: 5 }), TrawlConnectionError);
});

test('requests have the API key and are sent with the given fetch', async (t) => {
  const { url, requests } = await scriptedServer(t, INDEXES);
  const seen: unknown[] = [];
  const client = new TrawlClient(url, {
    apiKey: 'k-1',
    fetch: (...args) => {
      seen.push(args[0]);
      return fetch(...args);
    },
  });
  await client.indexes();
  assert.equal(requests[0]!.headers.authorization, 'Bearer k-1');
  assert.deepEqual(seen, [`${url}/v1/indexes`]);
});

test('the reply of another server is an error, and invalid settings are refused', async (t) => {
  for (const body of ['<html>', '[1]', 'null']) {
    const { url } = await scriptedServer(t, { status: 200, body });
    await assert.rejects(new TrawlClient(url).indexes(), /Check that it is a Trawl server/);
  }
  const { url } = await scriptedServer(t, { status: 502, body: '<html>' });
  await assert.rejects(new TrawlClient(url).indexes(), { status: 502, code: 'UNKNOWN' });
  assert.throws(() => new TrawlClient(url, { retry: { attempts: 0 } }), /attempts is 0/);
});
