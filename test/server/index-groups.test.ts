import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import { buildApp } from '../../src/server/app.ts';
import { listen } from '../../src/server/connections/listen.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../src/server/indexes/index-slot.ts';
import { fileFolder, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, errorOf, eventually, postTo } from './build.ts';
import { memoryLog } from './memory-log.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not built: ${loaded.reason}`;
const folder = await fileFolder();
let url = '';
/** `both` has vectors and words, `words` only words: a search by vectors fails in it. */
const NAMES = ['both', 'words'];
const holder = new IndexRegistry(
  NAMES.map(
    (name) =>
      new IndexSlot(name, { folder: join(folder, name) }, (_, target) =>
        openRetriever(target.folder, { name, encoderThreads: 1 }),
      ),
  ),
  new Map([['all', NAMES]]),
);
before(async () => {
  if (!loaded.ok) return;
  await runTrawl([
    'index',
    SAMPLE_PASSAGES,
    '--out',
    join(folder, 'both'),
    '--bm25',
    '--model',
    'token-average-256',
    '--quiet',
  ]);
  await runTrawl(['index', SAMPLE_PASSAGES, '--out', join(folder, 'words'), '--bm25', '--quiet']);
  await holder.open();
  const app = buildApp(holder, { mcp: { hosts: [] } });
  url = await listen(app, { host: '127.0.0.1', port: 0 });
  after(async () => {
    app.server.closeAllConnections();
    await app.close();
    await holder.close();
  });
});

interface Hit {
  readonly index?: string;
  readonly row: number;
  readonly id: string;
  readonly score: number;
  readonly indexScore?: number;
  readonly terms?: object[];
}

interface Reply {
  readonly index: { name: string; members?: { index: string }[] };
  readonly results: { ok: boolean; hits: Hit[]; failedIndexes?: { index: string; error: { code: string } }[] }[];
  readonly result: { document: { id: string }; score: number }[][];
  readonly error?: { code: string; message: string };
}

async function ask(path: string, body: object): Promise<{ status: number; body: Reply }> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Reply };
}

const VIENNA = 'Which river flows through Vienna?';

test('BM25 over two indexes gives each passage of both, fused by rank, with its index and its score there', {
  skip,
}, async () => {
  const alone = (await ask('/v1/search', { queries: [VIENNA], index: 'words', mode: 'bm25', k: 3 })).body.results[0]!
    .hits;
  const { status, body } = await ask('/v1/search', {
    queries: [VIENNA],
    index: NAMES,
    mode: 'bm25',
    k: 6,
    explain: true,
  });
  assert.equal(status, 200);
  assert.deepEqual([body.index.name, body.index.members!.map(({ index }) => index)], ['both,words', NAMES]);
  const { hits } = body.results[0]!;
  assert.deepEqual(
    hits.map(({ index, row, indexScore }) => [index, row, indexScore]),
    alone.flatMap(({ row, score }) => NAMES.map((index) => [index, row, score])),
  );
  assert.deepEqual(
    hits.map(({ score }) => score),
    [1, 1, 2, 2, 3, 3].map((rank) => Math.fround(1 / (60 + rank))),
  );
  assert.ok(hits.every(({ terms }) => terms!.length > 0));
});

test('a hybrid search of a group is explained with the lists of each index', { skip }, async () => {
  const request = { queries: [VIENNA], index: ['both'], mode: 'hybrid', k: 3, explain: true };
  const { body } = await ask('/v1/search', request);
  const [result] = body.results as unknown as {
    fusion: { lists: { index: string }[] };
    hits: { indexScore: number; dense: { part: number } | null; bm25: { part: number } | null }[];
  }[];
  assert.deepEqual(
    result!.fusion.lists.map(({ index }) => index),
    ['both'],
  );
  for (const { indexScore, dense, bm25 } of result!.hits)
    assert.equal(Math.fround((dense?.part ?? 0) + (bm25?.part ?? 0)), indexScore);
});

interface Scored {
  readonly results: readonly { readonly passages: readonly ({ index: string; row: number; bm25: object } | null)[] }[];
}

test('/v1/score over several indexes gives each passage the score and rank of its index', { skip }, async () => {
  const hits = (await ask('/v1/search', { queries: [VIENNA], index: 'both', mode: 'bm25', k: 3 })).body.results[0]!
    .hits;
  const ids = [hits[2]!.id, 'none', hits[0]!.id];
  for (const index of ['all', NAMES, ['words', 'both']]) {
    const { status, body } = await ask('/v1/score', { queries: [{ query: VIENNA, ids }], index, modes: ['bm25'] });
    assert.equal(status, 200);
    const [third, none, first] = (body as unknown as Scored).results[0]!.passages;
    const where = index[0] === 'words' ? 'words' : 'both';
    assert.deepEqual([third!.index, third!.row, none, first!.index], [where, hits[2]!.row, null, where]);
    assert.deepEqual(third!.bm25, { score: hits[2]!.score, rank: 3 });
    assert.deepEqual(first!.bm25, { score: hits[0]!.score, rank: 1 });
  }
});

test('/v1/score over several indexes refuses rows, which are those of one index, and a mode that one lacks', {
  skip,
}, async () => {
  const rows = await ask('/v1/score', { queries: [{ query: 'a' }, { query: 'b', rows: [0] }], index: 'all' });
  assert.deepEqual([rows.status, rows.body.error!.code], [422, 'INVALID_REQUEST']);
  assert.match(rows.body.error!.message, /queries\.1\.rows: .*ids/);
  // The passage is found in the first index, but the group's second has no vectors: only those asked for matter.
  const dense = { queries: [{ query: VIENNA, ids: ['s-0001'] }], modes: ['dense'] };
  assert.equal((await ask('/v1/score', { ...dense, index: ['both', 'words'] })).status, 200);
  const refused = await ask('/v1/score', { ...dense, index: ['words', 'both'] });
  assert.deepEqual([refused.status, refused.body.error!.code], [501, 'NOT_SUPPORTED']);
  assert.match(refused.body.error!.message, /^Index words: /);
  assert.equal((await ask('/v1/score', { ...dense, index: [] })).status, 422);
});

test('an index that cannot search by vectors fails the request; with allowPartial it fails alone', {
  skip,
}, async () => {
  const request = { queries: [VIENNA], index: NAMES, mode: 'dense', k: 2 };
  const refused = await ask('/v1/search', request);
  assert.equal(refused.status, 501);
  assert.match(refused.body.error!.message, /^Index words: .*has no vectors/);
  const { status, body } = await ask('/v1/search', { ...request, allowPartial: true });
  assert.equal(status, 200);
  const [result] = body.results;
  assert.deepEqual(
    result!.failedIndexes!.map(({ index, error }) => [index, error.code]),
    [['words', 'NOT_SUPPORTED']],
  );
  const alone = (await ask('/v1/search', { ...request, index: 'both' })).body.results[0]!.hits;
  assert.deepEqual(
    result!.hits.map(({ index, row }) => [index, row]),
    alone.map(({ row }) => ['both', row]),
  );
});

test("a client's mistake in one index is no error of the server in the log, with allowPartial neither", {
  skip,
}, async (t) => {
  const { logger, lines } = memoryLog();
  const app = build(t, holder, { logger });
  const request = { queries: [VIENNA], index: NAMES, mode: 'dense', allowPartial: true };
  assert.equal((await postTo(app, '/v1/search', request)).status, 200);
  const refused = lines.filter(({ msg }) => msg === 'query refused');
  assert.deepEqual(
    refused.map(({ level, code }) => [level, code]),
    [[30, 'NOT_SUPPORTED']],
  );
  assert.ok(lines.every(({ level }) => Number(level) <= 30));
});

test('exclusion, fusion of queries and deduplication work over a group as over an index', { skip }, async () => {
  const request = { queries: [VIENNA, 'capital of Finland'], index: 'all', mode: 'bm25', k: 4 };
  const first = (await ask('/v1/search', { ...request, fuse: 'rrf' })).body as unknown as { hits: Hit[] };
  assert.deepEqual(new Set(first.hits.map(({ index }) => index)), new Set(NAMES));
  const seen = first.hits.map(({ id }) => id);
  const next = (await ask('/v1/search', { ...request, fuse: 'rrf', exclude: seen })).body as unknown as { hits: Hit[] };
  assert.equal(next.hits.length, 4);
  assert.ok(next.hits.every(({ id }) => !seen.includes(id)));
  const distinct = (await ask('/v1/search', { ...request, deduplicate: 'title' })).body.results.flatMap(
    ({ hits }) => hits,
  );
  assert.equal(new Set(distinct.map(({ id }) => id)).size, distinct.length);
});

test('every dialect and MCP can use a group by its name, as any index', { skip }, async () => {
  const body = { queries: [VIENNA], topk: 4, return_scores: true };
  const { status, body: reply } = await ask('/indexes/all/retrieve', body);
  assert.equal(status, 200);
  const ids = reply.result[0]!.map(({ document }) => document.id);
  assert.deepEqual([ids[0], ids[2]], [ids[1], ids[3]]);
  assert.deepEqual((await ask('/retrieve?index=all', body)).body, reply);
  const call = (name: string, args: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: args },
  });
  const found = (await ask('/indexes/all/mcp', call('search', { query: VIENNA, k: 2 }))).body as unknown as {
    result: { structuredContent: { results: { id: string }[] } };
  };
  const [first] = found.result.structuredContent.results;
  assert.equal(first!.id, ids[0]);
  const fetched = (await ask('/indexes/all/mcp', call('fetch', { id: first!.id }))).body as unknown as {
    result: { structuredContent: { id: string } };
  };
  assert.equal(fetched.result.structuredContent.id, first!.id);
  const passage = (await (await fetch(`${url}/indexes/all/v1/passages/${first!.id}`)).json()) as {
    index: string;
    row: number;
  };
  assert.equal(passage.index, 'both');
  const ready = (await (await fetch(`${url}/indexes/all/readyz`)).json()) as { index: string; modes: string[] };
  assert.deepEqual([ready.index, ready.modes], ['all', ['bm25']]);
  const listed = (await (await fetch(`${url}/v1/indexes`)).json()) as { groups: object[] };
  assert.deepEqual(listed.groups, [{ name: 'all', indexes: NAMES }]);
});

test('wrong lists of indexes are refused: empty, unknown, or beside an index in the URL', { skip }, async () => {
  for (const [path, index, status] of [
    ['/v1/search', [], 422],
    ['/v1/search', [1], 422],
    ['/v1/search', ['both', 'none'], 404],
    ['/indexes/words/v1/search', ['both'], 422],
  ] as const) {
    assert.equal((await ask(path, { queries: ['a'], index })).status, status, JSON.stringify(index));
  }
  const reload = await ask('/admin/indexes/all/reload', {});
  assert.deepEqual([reload.status, reload.body.error!.code], [501, 'NOT_SUPPORTED']);
});

/** A holder of the indexes a and b, which are the group ab. A reload of b opens the next of its retrievers. */
async function groupOf(a: FakeRetriever, ...versions: FakeRetriever[]): Promise<IndexRegistry> {
  const slots = [
    new IndexSlot('a', { folder: 'a' }, async () => a),
    new IndexSlot('b', { folder: 'b' }, async () => versions.shift()!),
  ];
  const groups = new IndexRegistry(slots, new Map([['ab', ['a', 'b']]]));
  await groups.open();
  return groups;
}

test('a reload of one index does not break a running search of its group', async (t) => {
  let proceed = (): void => undefined;
  const held = new Promise<void>((resolve) => (proceed = resolve));
  let searching = false;
  const old = new FakeRetriever({
    index: 'b',
    before({ queries }) {
      if (JSON.stringify(queries).includes('first query')) return undefined;
      searching = true;
      return held;
    },
  });
  const groups = await groupOf(
    new FakeRetriever({ index: 'a' }),
    old,
    new FakeRetriever({ index: 'b', generation: 'new' }),
  );
  const running = postTo(build(t, groups), '/indexes/ab/retrieve', { queries: ['x'], topk: 2 });
  await eventually(() => searching);
  await groups.slot('b').load();
  assert.equal(groups.slot('b').retriever!.info.generation, 'new');
  assert.equal(old.closed, false);
  proceed();
  const { status, text } = await running;
  assert.equal(status, 200, text);
  await eventually(() => old.closed);
});

test('a group with the name of an index or with an unknown index is refused when the server is made', () => {
  const slots = [new IndexSlot('a'), new IndexSlot('b')];
  assert.throws(
    () => new IndexRegistry(slots, new Map([['a', ['b']]])),
    trawlError('USAGE', /An index has the name a/),
  );
  assert.throws(
    () => new IndexRegistry(slots, new Map([['g', ['a', 'c']]])),
    trawlError('USAGE', /index c, which is not served/),
  );
});

test('a taken name, and the removal of an index of a group, are refused with a way out', () => {
  const served = new IndexRegistry([new IndexSlot('a'), new IndexSlot('b')], new Map([['all', ['a']]]));
  for (const name of ['a', 'all']) {
    assert.throws(() => served.add(new IndexSlot(name)), trawlError('INDEX_EXISTS', /Choose another name/));
  }
  assert.throws(() => served.remove('a'), trawlError('NOT_SUPPORTED', /Leave it out of --group all/));
  assert.equal(served.remove('b').name, 'b');
});

test('a failing index of a group gives a dialect the error with the name of the index', async (t) => {
  const failing = new FakeRetriever({ index: 'b' });
  const groups = await groupOf(new FakeRetriever({ index: 'a' }), failing);
  failing.closed = true;
  const { status, json } = await postTo(build(t, groups), '/indexes/ab/retrieve', { queries: ['x'], topk: 2 });
  assert.equal(status, 503);
  assert.match(errorOf(json).message, /^Index b: /);
});
