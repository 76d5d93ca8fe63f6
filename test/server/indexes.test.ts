import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { NO_STATISTICS } from '../../src/search/retriever-statistics.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot, type IndexTarget, type OpenIndex } from '../../src/server/indexes/index-slot.ts';
import { FakeRetriever, type FakeRetrieverOptions } from '../helpers/fake-retriever.ts';
import { build, errorOf, eventually, openSocket, post, postTo, readToEnd, serve } from './build.ts';

function documentsOf(name: string): string[] {
  return Array.from({ length: 5 }, (_, i) => JSON.stringify({ id: `${name}-${i}`, text: 'x' }));
}

function fake(index: string, generation = 'g1', more: FakeRetrieverOptions = {}): FakeRetriever {
  return new FakeRetriever({ index, generation, documents: documentsOf(`${index}-${generation}`), ...more });
}

/** Two indexes, and every retriever opened for them. */
async function two(
  open?: (name: string, target: IndexTarget, nth: number) => FakeRetriever | Promise<FakeRetriever>,
): Promise<{ holder: IndexRegistry; opened: FakeRetriever[] }> {
  const opened: FakeRetriever[] = [];
  const counts = new Map<string, number>();
  const opener: OpenIndex = async (name, target) => {
    const nth = (counts.get(name) ?? 0) + 1;
    counts.set(name, nth);
    const retriever = (await open?.(name, target, nth)) ?? fake(name, `g${nth}`);
    opened.push(retriever);
    return retriever;
  };
  const holder = IndexRegistry.opening(
    [
      { name: 'wiki', folder: '/somewhere/wiki' },
      { name: 'news', folder: '/somewhere/news' },
    ],
    opener,
  );
  await holder.open();
  return { holder, opened };
}

function firstId(json: unknown): string {
  return String((json as { result: { id: string }[][] }).result[0]![0]!.id).replace(/-\d$/, '');
}

test('a request gets the index named in path, query string or body, or else the first one', async (t) => {
  const { holder } = await two();
  const app = build(t, holder);
  const ask = { queries: ['a'], topk: 1 };
  assert.equal(firstId((await post(app, ask)).json), 'wiki-g1');
  for (const url of ['/retrieve?index=news', '/indexes/news/retrieve', '/indexes/news/retrieve?index=news']) {
    assert.equal(firstId((await postTo(app, url, ask)).json), 'news-g1', url);
  }
  assert.equal(firstId((await postTo(app, '/indexes/n%65ws/retrieve', ask)).json), 'news-g1');
  const native = await postTo(app, '/v1/search', { queries: ['a'], index: 'news' });
  assert.equal((native.json as { index: { name: string } }).index.name, 'news');
  const queries = await postTo(app, '/indexes/news/queries', { queries: ['a'], k: 1 });
  assert.match(queries.text, /news-g1/);
  assert.equal((await app.inject('/indexes/news/v1/passages/news-g1-0')).statusCode, 200);
  assert.equal((await app.inject('/v1/passages/news-g1-0?index=news')).statusCode, 200);
  assert.equal((await app.inject('/v1/passages/news-g1-0')).statusCode, 404);
});

test('an unknown index is a 404, and two different names are a 422', async (t) => {
  const { holder } = await two();
  const app = build(t, holder);
  for (const url of [
    '/retrieve?index=none',
    '/indexes/none/retrieve',
    '/retrieve?index=',
    '/indexes/__proto__/retrieve',
  ]) {
    const { status, json } = await postTo(app, url, { queries: ['a'] });
    assert.deepEqual([status, errorOf(json).code], [404, 'NOT_FOUND'], url);
    assert.match(errorOf(json).message, /not found. Expected wiki, news/);
  }
  const openai = await postTo(app, '/indexes/none/v1/embeddings', { input: 'a', model: 'fake-encoder' });
  assert.equal(openai.status, 404);
  assert.equal((openai.json as { error: { type: string } }).error.type, 'invalid_request_error');
  for (const [url, body] of [
    ['/retrieve?index=wiki&index=news', { queries: ['a'] }],
    ['/indexes/wiki/retrieve?index=news', { queries: ['a'] }],
    ['/indexes/wiki/v1/search', { queries: ['a'], index: 'news' }],
  ] as const) {
    const { status, json } = await postTo(app, url, body);
    assert.deepEqual([status, errorOf(json).code], [422, 'INVALID_REQUEST'], url);
  }
  for (const url of ['/indexes/news', '/indexes//retrieve', '/indexes/%zz/retrieve', '/indexes/a/indexes/b/retrieve']) {
    assert.equal((await postTo(app, url, { queries: ['a'] })).status, 404, url);
  }
  const redirect = await postTo(app, '/indexes/news/retrieve/?index=news', {});
  assert.deepEqual([redirect.status, redirect.headers.location], [307, '/indexes/news/retrieve?index=news']);
});

test('/readyz and /v1/indexes list all indexes', async (t) => {
  const { holder } = await two();
  const app = build(t, holder);
  const { indexes } = (await app.inject('/v1/indexes')).json<{ indexes: { name: string; default: boolean }[] }>();
  assert.deepEqual(
    indexes.map(({ name, default: first }) => [name, first]),
    [
      ['wiki', true],
      ['news', false],
    ],
  );
  const ready = (await app.inject('/readyz')).json<{ index: string; indexes: { name: string; stage: string }[] }>();
  assert.equal(ready.index, 'wiki');
  assert.deepEqual(
    ready.indexes.map(({ name, stage }) => [name, stage]),
    [
      ['wiki', 'ready'],
      ['news', 'ready'],
    ],
  );
  const health = (await app.inject('/health')).json<{ retrievers: object }>();
  assert.deepEqual(health.retrievers, { total: 2, available: 2 });
  const named = async (url: string): Promise<unknown> => (await app.inject(url)).json<{ index: string }>().index;
  assert.deepEqual(
    [await named('/indexes/news/readyz'), await named('/readyz?index=news'), await named('/readyz')],
    ['news', 'news', 'wiki'],
  );
  assert.equal((await app.inject('/indexes/news/health')).statusCode, 200);
  // A URL in absolute form.
  const socket = await openSocket(t, (await serve(t, holder)).port);
  const received = readToEnd(socket);
  socket.write('GET http://any.host/indexes/news/readyz HTTP/1.1\r\nhost: any.host\r\nconnection: close\r\n\r\n');
  assert.match(await received, /"index":"news"/);
  for (const route of ['readyz', 'health']) assert.equal((await app.inject(`/indexes/no/${route}`)).statusCode, 404);
});

test('the server is ready only when each index has answered a query', async (t) => {
  let answer = (): void => {};
  const held = new Promise<void>((resolve) => (answer = resolve));
  const slots = [new IndexSlot('slow', { folder: '/x' }, async (name) => fake(name, 'g1', { before: () => held }))];
  const holder = new IndexRegistry(slots);
  const app = build(t, holder, { holdMs: 0 });
  const opening = holder.open();
  await eventually(() => slots[0]!.progress.stage === 'warming');
  const starting = await app.inject('/readyz');
  assert.equal(starting.statusCode, 503);
  assert.match(starting.payload, /"stage":"warming","doing":"answering the first query"/);
  assert.equal((await post(app, { queries: ['a'] })).status, 503);
  answer();
  await opening;
  assert.equal((await app.inject('/readyz')).statusCode, 200);
});

test('an index whose first query fails is closed and does not become ready', async () => {
  const retriever = fake('broken', 'g1', {
    outcome: () => ({ ok: false, error: new TrawlError('ENCODING_FAILED', 'no') }),
  });
  const holder = new IndexRegistry([new IndexSlot('broken', { folder: '/x' }, async () => retriever)]);
  await assert.rejects(holder.open(), { code: 'ENCODING_FAILED' });
  assert.equal(holder.state, 'starting');
  assert.equal(retriever.closed, true);
});

test('a reload replaces index and encoder for new requests, and the old ones close after their last request', async (t) => {
  let finish = (): void => {};
  const old = fake('wiki', 'g1', {
    before: ({ queries }) => (queries[0] === 'slow' ? new Promise<void>((resolve) => (finish = resolve)) : undefined),
  });
  const retrievers = [old, fake('wiki', 'g2')];
  const slot = new IndexSlot('wiki', { folder: '/x' }, async () => retrievers.shift()!);
  const served = new IndexRegistry([slot]);
  await served.open();
  const app = build(t, served);
  const running = post(app, { queries: ['slow'] });
  await eventually(() => old.calls.length === 2);
  const { status, json } = await postTo(app, '/admin/indexes/wiki/reload', {});
  assert.equal(status, 200);
  const { generation, previous, name } = json as Record<string, unknown>;
  assert.deepEqual([name, previous, generation], ['wiki', 'g1', 'g2']);
  assert.equal(firstId((await post(app, { queries: ['a'] })).json), 'wiki-g2');
  assert.deepEqual([old.closed, slot.draining], [false, 1]);
  finish();
  assert.equal(firstId((await running).json), 'wiki-g1');
  await eventually(() => old.closed);
  assert.equal(slot.draining, 0);
});

test('a replaced index that cannot be closed is reported, and its counters stay', async () => {
  class Stuck extends FakeRetriever {
    override async close(): Promise<void> {
      throw new TrawlError('ENCODING_FAILED', 'cannot be closed');
    }
  }
  const statistics = () => ({ ...NO_STATISTICS, sharing: { ...NO_STATISTICS.sharing, computed: 3 } });
  const retrievers = [new Stuck({ index: 'wiki', statistics }), fake('wiki', 'g2')];
  const failures: unknown[] = [];
  const holder = IndexRegistry.opening(
    [{ name: 'wiki', folder: '/x' }],
    async () => retrievers.shift()!,
    new Map(),
    (index, error) => failures.push([index, (error as TrawlError).message]),
  );
  await holder.open();
  const slot = holder.slot('wiki');
  await slot.load();
  await eventually(() => slot.draining === 0);
  assert.deepEqual(failures, [['wiki', 'cannot be closed']]);
  assert.equal(slot.statistics?.sharing.computed, 3);
  await holder.close();
});

test('a request that searches several times is answered by one generation, even during a reload', async (t) => {
  // Deduplication by title searches deeper and deeper, because all rows have the same title.
  const documents = Array.from({ length: 200 }, (_, i) => JSON.stringify({ id: `${i}`, title: 'T', text: 'x' }));
  let reloaded: Promise<unknown> | undefined;
  const before: FakeRetrieverOptions['before'] = async ({ queries }) => {
    if (queries[0] !== 'a') return;
    reloaded ??= holder.slot('wiki').load();
    await reloaded;
  };
  const { holder, opened } = await two((name, _target, nth) => fake(name, `g${nth}`, { documents, before }));
  const app = build(t, holder);
  const { status, json } = await postTo(app, '/v1/search', { queries: ['a'], k: 3, deduplicate: 'title' });
  assert.equal(status, 200);
  assert.equal((json as { index: { generation: string } }).index.generation, 'g1');
  const asked = opened[0]!.calls.length;
  assert.ok(asked > 2, `${asked} calls`);
  await eventually(() => opened[0]!.closed);
});

test('a failed reload gives the reason without paths, and the old index still answers', async (t) => {
  const folder = '/secret/place/wiki';
  const { holder, opened } = await two((name, target, nth) => {
    if (nth > 1) throw new TrawlError('INDEX_FILE_MISSING', `${target.folder}/vectors.faiss: cannot be read (ENOENT).`);
    return fake(name);
  });
  const app = build(t, holder);
  const { status, json, text } = await postTo(app, '/admin/indexes/wiki/reload', { folder });
  assert.deepEqual([status, errorOf(json).code], [409, 'RELOAD_FAILED']);
  assert.match(
    errorOf(json).message,
    /INDEX_FILE_MISSING: A file that the manifest names does not exist\. The old index/,
  );
  assert.doesNotMatch(text, /secret|vectors\.faiss|ENOENT|\.js|\n/);
  assert.equal(firstId((await post(app, { queries: ['a'] })).json), 'wiki-g1');
  assert.equal(opened[0]!.closed, false);
  assert.equal((await app.inject('/readyz')).statusCode, 200);
});

test('a reload uses a new directory, and keeps it only if it could be opened', async (t) => {
  const folders: string[] = [];
  const { holder } = await two((name, target, nth) => {
    if (name === 'wiki') folders.push(`${target.folder} ${target.model ?? ''}`);
    if (target.folder === '/bad') throw new TrawlError('INDEX_NOT_FOUND', 'x');
    return fake(name, `g${nth}`);
  });
  const app = build(t, holder);
  const reload = (body: object | string): Promise<{ status: number }> =>
    postTo(app, '/admin/indexes/wiki/reload', body);
  const statuses = [];
  for (const body of [{}, { folder: '/bad' }, '', { folder: '/new', model: 'm' }, {}]) {
    statuses.push((await reload(body)).status);
  }
  assert.deepEqual(statuses, [200, 409, 200, 200, 200]);
  assert.deepEqual(folders, ['/somewhere/wiki ', '/somewhere/wiki ', '/bad ', '/somewhere/wiki ', '/new m', '/new m']);
});

test('the encoder named in a reload is not used for the folder of the next one', async (t) => {
  const targets: string[] = [];
  const { holder } = await two((name, target, nth) => {
    if (name === 'wiki') targets.push(`${target.folder} ${target.model ?? ''}`);
    return fake(name, `g${nth}`);
  });
  const app = build(t, holder);
  for (const body of [{ folder: '/a', model: 'm' }, {}, { folder: '/b' }, {}, { model: 'n' }, {}]) {
    assert.equal((await postTo(app, '/admin/indexes/wiki/reload', body)).status, 200);
  }
  assert.deepEqual(targets.slice(1), ['/a m', '/a m', '/b ', '/b ', '/b n', '/b n']);
});

test('concurrent reloads run one after another', async (t) => {
  let opening = 0;
  let most = 0;
  const { holder, opened } = await two(async (name, _target, nth) => {
    most = Math.max(most, ++opening);
    await new Promise((resolve) => setTimeout(resolve, 5));
    opening--;
    return fake(name, `g${nth}`);
  });
  const app = build(t, holder);
  const answers = await Promise.all(Array.from({ length: 5 }, () => postTo(app, '/admin/indexes/wiki/reload', {})));
  assert.deepEqual(
    answers.map(({ json }) => (json as { generation: string }).generation),
    ['g2', 'g3', 'g4', 'g5', 'g6'],
  );
  assert.equal(most, 1);
  await eventually(() => opened.filter(({ closed }) => closed).length === 5);
});

test('a wrong reload request is refused, and nothing is loaded', async (t) => {
  const { holder, opened } = await two();
  const app = build(t, holder);
  for (const [url, body, expected] of [
    ['/admin/indexes/none/reload', {}, 404],
    ['/admin/indexes/wiki/reload', { path: '/x' }, 422],
    ['/admin/indexes/wiki/reload', { folder: 3 }, 422],
    ['/admin/indexes/wiki/reload', [], 422],
    ['/admin/indexes/wiki/reload', '{', 422],
    ['/admin/indexes/wiki/other', {}, 404],
  ] as const) {
    assert.equal((await postTo(app, url, body)).status, expected, `${url} ${JSON.stringify(body)}`);
  }
  const get = await app.inject('/admin/indexes/wiki/reload');
  assert.deepEqual([get.statusCode, get.headers.allow], [405, 'POST, OPTIONS']);
  assert.equal(opened.length, 2);
  const handed = build(t, new FakeRetriever());
  assert.equal((await postTo(handed, '/admin/indexes/fake-sample/reload', {})).status, 501);
  const starting = build(t, new IndexRegistry());
  assert.equal((await postTo(starting, '/admin/indexes/x/reload', {})).status, 503);
});

test('a server that stops during a reload closes the new index without using it', async () => {
  let finish = (): void => {};
  const { holder, opened } = await two(async (name, _target, nth) => {
    if (nth > 1) await new Promise<void>((resolve) => (finish = resolve));
    return fake(name, `g${nth}`);
  });
  const loading = holder.slot('wiki').load();
  await new Promise((resolve) => setTimeout(resolve, 5));
  const closing = holder.close();
  finish();
  await assert.rejects(loading, { code: 'NOT_READY' });
  await closing;
  assert.equal(opened.length, 3);
  assert.ok(opened.every(({ closed }) => closed));
});

test('a stopping server finishes the running reload and refuses waiting ones', async (t) => {
  let finish: (() => void) | undefined;
  const { holder, opened } = await two(async (name, _target, nth) => {
    if (nth > 1) await new Promise<void>((resolve) => (finish = resolve));
    return fake(name, `g${nth}`);
  });
  const app = build(t, holder);
  const reloads = Array.from({ length: 4 }, () => postTo(app, '/admin/indexes/wiki/reload', {}));
  await eventually(() => finish !== undefined);
  holder.stop();
  finish!();
  const answers = await Promise.all(reloads);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 503, 503, 503],
  );
  assert.equal(errorOf(answers[1]!.json).code, 'NOT_READY');
  assert.equal(opened.length, 3);
  await holder.close();
  assert.ok(opened.every(({ closed }) => closed));
});

test('two indexes with the same name are refused', () => {
  const target = { name: 'a', folder: '/x' };
  assert.throws(() => IndexRegistry.opening([target, target], async () => fake('a')), { code: 'USAGE' });
});

test('reloads under load lose no request and mix no generations', async (t) => {
  const { holder, opened } = await two((name, _target, nth) =>
    fake(name, `g${nth}`, { before: () => new Promise((resolve) => setTimeout(resolve, Math.random() * 8)) }),
  );
  const { url } = await serve(t, holder);
  let stop = false;
  let answered = 0;
  const generations = new Set<string>();
  const client = async (): Promise<void> => {
    while (!stop) {
      const response = await fetch(`${url}/v1/search`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ queries: ['a', 'b', 'c'], k: 5, exclude: ['none'] }),
      });
      assert.equal(response.status, 200);
      const body = (await response.json()) as { index: { generation: string }; results: { hits: { id: string }[] }[] };
      const ids = body.results.flatMap(({ hits }) => hits.map(({ id }) => id));
      assert.equal(ids.length, 15);
      for (const id of ids)
        assert.ok(id.startsWith(`wiki-${body.index.generation}-`), `${id} in ${body.index.generation}`);
      generations.add(body.index.generation);
      answered++;
    }
  };
  const clients = Array.from({ length: 16 }, client);
  for (let i = 0; i < 25; i++) {
    await holder.slot('wiki').load();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  stop = true;
  await Promise.all(clients);
  assert.ok(generations.size > 10 && answered > 100, `${generations.size} generations, ${answered} answers`);
  await eventually(() => opened.filter(({ info, closed }) => info.index === 'wiki' && !closed).length === 1);
});
