import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TrawlClient, TrawlConnectionError, TrawlResponseError } from '../../src/client/index.ts';
import { FakeRetriever, untilAborted } from '../helpers/fake-retriever.ts';
import { eventually, serve } from '../server/build.ts';
import { type ScriptedAnswer, type ScriptedServer, scriptedServer } from './scripted-server.ts';

const INDEXES: ScriptedAnswer = { status: 200, body: { indexes: [] } };
const NOT_READY = refusal(503, 'NOT_READY', '30');
const OVERLOADED = refusal(503, 'OVERLOADED', '0');
const COOLDOWN_MS = 60_000;
const OPTIONS = { retry: { attempts: 3, firstWaitMs: 1, cooldownMs: COOLDOWN_MS } };

function refusal(status: number, code: string, retryAfter = '0'): ScriptedAnswer {
  return { status, headers: { 'retry-after': retryAfter }, body: { error: { code, message: 'Not now.' } } };
}

const counts = (...servers: readonly ScriptedServer[]): number[] => servers.map(({ requests }) => requests.length);
const urls = (...servers: readonly { url: string }[]): string[] => servers.map(({ url }) => url);

async function times(count: number, call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) await call();
}

test('calls are spread evenly over the servers of a comma-separated list', async (t) => {
  const servers = [
    await scriptedServer(t, INDEXES),
    await scriptedServer(t, INDEXES),
    await scriptedServer(t, INDEXES),
  ];
  const client = new TrawlClient(urls(...servers).join(', '));
  await Promise.all(Array.from({ length: 60 }, () => client.indexes()));
  assert.deepEqual(counts(...servers), [20, 20, 20]);
});

test('a server that stops during calls is skipped until the cool-down is over', async (t) => {
  const [first, second] = [await scriptedServer(t, INDEXES), await scriptedServer(t, INDEXES)];
  const client = new TrawlClient(urls(first, second), OPTIONS);
  const calls = Array.from({ length: 50 }, () => client.indexes());
  await eventually(() => first.requests.length > 5);
  await first.stop();
  await Promise.all(calls);
  // A lost connection does not start the cool-down; a refused connection does.
  await times(2, () => client.indexes());
  const beforeCooldown = first.requests.length;
  await first.start();
  await times(10, () => client.indexes());
  assert.equal(first.requests.length, beforeCooldown);
  later(t, COOLDOWN_MS);
  await times(20, () => client.indexes());
  assert.ok(first.requests.length >= beforeCooldown + 10);
});

test('after the cool-down one request tries the server again, and the others do not wait for it', async (t) => {
  const [dead, live] = [await scriptedServer(t, INDEXES), await scriptedServer(t, INDEXES)];
  let gate = Promise.resolve();
  let release = (): void => {};
  const client = new TrawlClient(urls(dead, live), {
    ...OPTIONS,
    fetch: async (input, init) => {
      if (String(input).startsWith(dead.url)) await gate;
      return fetch(input, init);
    },
  });
  await dead.stop();
  await times(2, () => client.indexes());
  await dead.start();
  gate = new Promise((resolve) => {
    release = resolve;
  });
  later(t, COOLDOWN_MS);
  let answered = 0;
  const calls = Array.from({ length: 8 }, () => client.indexes().then(() => answered++));
  await eventually(() => answered === 7);
  release();
  await Promise.all(calls);
  assert.deepEqual(counts(dead, live), [1, 9]);
});

test('a server whose reply timed out is skipped, and the call is not repeated', async (t) => {
  const retriever = new FakeRetriever({ before: untilAborted });
  const silent = await serve(t, retriever);
  const live = await scriptedServer(t, INDEXES);
  const client = new TrawlClient([silent.url, live.url], OPTIONS);
  const call = (): Promise<unknown> => client.search(['a'], { signal: AbortSignal.timeout(1_000) });
  const outcomes: string[] = [];
  for (let i = 0; i < 6; i++) {
    outcomes.push(
      await call().then(
        () => 'answered',
        ({ name }: Error) => name,
      ),
    );
  }
  assert.deepEqual(outcomes.toSorted(), ['TimeoutError', ...Array<string>(5).fill('answered')]);
  assert.equal(retriever.calls.length, 1);
});

test('a server that is not ready is skipped', async (t) => {
  for (const answer of [NOT_READY, { status: 503, body: '<html>no upstream</html>' }]) {
    const [starting, live] = [await scriptedServer(t, answer), await scriptedServer(t, INDEXES)];
    const client = new TrawlClient(urls(starting, live), OPTIONS);
    await times(10, () => client.indexes());
    assert.deepEqual(counts(starting, live), [1, 10]);
  }
});

test('after OVERLOADED or a lost connection a call tries another server, and no server is skipped', async (t) => {
  for (const answer of [OVERLOADED, { status: 0 }, { ...INDEXES, half: true }]) {
    const [bad, live] = [await scriptedServer(t, answer), await scriptedServer(t, INDEXES)];
    const client = new TrawlClient(urls(bad, live), { retry: { attempts: 1, cooldownMs: COOLDOWN_MS } });
    await times(10, () => client.indexes());
    assert.deepEqual(counts(bad, live), [5, 10]);
  }
});

test('an error reply names its server, and the call is not repeated with another', async (t) => {
  const servers = [await scriptedServer(t, refusal(422, 'ANY')), await scriptedServer(t, refusal(422, 'ANY'))];
  const client = new TrawlClient(urls(...servers), OPTIONS);
  await assert.rejects(client.indexes(), (error) => {
    assert.ok(error instanceof TrawlResponseError);
    assert.deepEqual(
      servers.filter(({ requests }) => requests.length === 1).map(({ url }) => url),
      [error.url],
    );
    assert.ok(error.message.includes(error.url));
    return true;
  });
});

test('if no server can be reached the error names each with its reason, and a restarted server is used at once', async (t) => {
  const servers = [await scriptedServer(t, INDEXES), await scriptedServer(t, INDEXES)];
  for (const server of servers) await server.stop();
  const client = new TrawlClient(urls(...servers), OPTIONS);
  const namesBoth = (error: unknown): boolean => {
    assert.ok(error instanceof TrawlConnectionError);
    for (const { url } of servers) {
      assert.match(error.message, new RegExp(`${url}: fetch failed: connect ECONNREFUSED`));
    }
    return true;
  };
  await assert.rejects(client.indexes(), namesBoth);
  await assert.rejects(client.ready(), namesBoth);
  await assert.rejects(client.waitUntilReady({ timeoutMs: 20, pollMs: 5 }), namesBoth);
  await servers[1]!.start();
  assert.deepEqual(await client.indexes(), []);
});

test('if one server is overloaded and the other is down, the error is OVERLOADED', async (t) => {
  const [dead, full] = [await scriptedServer(t, INDEXES), await scriptedServer(t, OVERLOADED)];
  await dead.stop();
  await assert.rejects(new TrawlClient(urls(dead, full), OPTIONS).indexes(), { code: 'OVERLOADED', url: full.url });
});

test('waitUntilReady ends when one of several servers is ready', async (t) => {
  const starting = { status: 503, body: { status: 'starting', progress: 'mapping' } };
  const ready = { status: 200, body: { status: 'ready', rows: 3 } };
  const servers = [await scriptedServer(t, starting), await scriptedServer(t, starting, starting, ready)];
  const client = new TrawlClient(urls(...servers), OPTIONS);
  assert.equal((await client.ready()).ready, false);
  assert.equal((await client.waitUntilReady({ pollMs: 5 })).facts.rows, 3);
});

test('invalid lists of servers are refused', () => {
  for (const [list, message] of [
    ['', /"" is not a server's URL/],
    [[], /empty/],
    ['nonsense', /must begin with http/],
    ['http://a:1,,http://b:1', /"" is not a server's URL/],
    ['ftp://a', /must begin with http/],
    ['http://a:1, http://a:1/', /http:\/\/a:1 is given twice/],
  ] as const) {
    assert.throws(() => new TrawlClient(list), message);
  }
  assert.throws(() => new TrawlClient('http://a', { retry: { cooldownMs: -1 } }), /cooldownMs is -1/);
});

/** Moves the clock of the cool-down forward. */
function later(t: TestContext, ms: number): void {
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + ms);
}
