import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { PassageRequest, PassageShard } from '../../../src/index/passages/passage-protocol.ts';
import { SqlitePassageStore } from '../../../src/index/passages/sqlite-passage-store.ts';
import { runModule } from '../../helpers/run-module.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { documentOf, writePassages, writeShards } from './passage-files.ts';

async function openForTest(
  t: Parameters<typeof writeShards>[0],
  shards: readonly PassageShard[],
): Promise<SqlitePassageStore> {
  const store = await SqlitePassageStore.open(shards);
  t.after(() => store.close());
  return store;
}

test('documents come in the order of the rows given, repeats included', async (t) => {
  const store = await openForTest(t, await writeShards(t, [10]));
  assert.equal(store.rows, 10);
  assert.deepEqual(await store.getMany([7, 0, 7, 9, 0]), [7, 0, 7, 9, 0].map(documentOf));
  assert.deepEqual(await store.getMany(Float64Array.of(3, 1)), [3, 1].map(documentOf));
  assert.deepEqual(await store.getMany([]), []);
});

test('ids come as text in the order of the rows given: integers of any size exactly, and row: for a row without one', async (t) => {
  const folder = await tempFolder(t);
  const ids = ['a', 7, 9_007_199_254_740_993n, null, '9007199254740993', 10n ** 30n, ''];
  const half = 4;
  const shards = [ids.slice(0, half), ids.slice(half)].map((some, i): PassageShard => {
    const path = join(folder, `${i}.sqlite`);
    writePassages(
      path,
      some.map((id, line) => ({ id, line: line + 1, document: '{}' })),
    );
    return { path, firstRow: i * half, rows: some.length };
  });
  const store = await openForTest(t, shards);
  const expected = ['a', '7', '9007199254740993', 'row:3', '9007199254740993', `1${'0'.repeat(30)}`, ''];
  assert.deepEqual(
    await store.idsOf([6, 0, 3, 3, 2, 5, 1, 4]),
    [6, 0, 3, 3, 2, 5, 1, 4].map((row) => expected[row]),
  );
  await assert.rejects(store.idsOf([7]), RangeError);
  const rows = Array.from({ length: 2_000 }, (_, i) => i % 7);
  const [documents, texts] = await Promise.all([store.getMany(rows), store.idsOf(rows)]);
  assert.deepEqual(
    texts,
    rows.map((row) => expected[row]),
  );
  assert.deepEqual([...new Set(documents)], ['{}']);
});

test('a row is read from its shard, also if other shards are empty', async (t) => {
  const store = await openForTest(t, await writeShards(t, [0, 3, 1, 0, 0, 5, 0]));
  assert.equal(store.rows, 9);
  const rows = [8, 3, 4, 2, 0, 1, 5, 7, 6];
  assert.deepEqual(await store.getMany(rows), rows.map(documentOf));
});

test('more rows than one message holds are read over several, in order', async (t) => {
  const store = await openForTest(t, await writeShards(t, [700, 700]));
  const rows = Array.from({ length: 3001 }, (_, i) => (i * 977) % 1400);
  assert.deepEqual(await store.getMany(rows), rows.map(documentOf));
});

test('a row that does not exist is a RangeError, and nothing is read', async (t) => {
  const store = await openForTest(t, await writeShards(t, [4, 4]));
  for (const bad of [-1, 8, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    await assert.rejects(store.getMany([0, 1, bad, 2]), RangeError);
  }
  assert.deepEqual(await store.getMany([7]), [documentOf(7)]);
});

test('a passage missing from its file is an INTERNAL error, not an empty answer', async (t) => {
  const [shard] = await writeShards(t, [4]);
  const store = await openForTest(t, [{ ...shard!, rows: 6 }]);
  await assert.rejects(store.getMany([3, 5]), trawlError('INTERNAL', /no passage for row 5/));
  assert.deepEqual(await store.getMany([3]), [documentOf(3)]);
});

test('concurrent reads get their own documents', async (t) => {
  const store = await openForTest(t, await writeShards(t, [300, 300]));
  await Promise.all(
    Array.from({ length: 40 }, async (_, i) => {
      const rows = Array.from({ length: 1 + ((i * 37) % 1200) }, (_, j) => (i * 31 + j * 7) % 600);
      assert.deepEqual(await store.getMany(rows), rows.map(documentOf));
    }),
  );
});

test('small reads share a message and do not wait for a large one', async (t) => {
  const shards = await writeShards(t, [600]);
  const threads: Worker[] = [];
  const onWorker = (worker: Worker): number => threads.push(worker);
  process.on('worker', onWorker);
  const store = await openForTest(t, shards);
  process.off('worker', onWorker);
  const sent: number[] = [];
  const [thread] = threads;
  const post = thread!.postMessage.bind(thread);
  thread!.postMessage = (message: { request?: PassageRequest }) => {
    if (message.request !== undefined) sent.push(message.request.items.length);
    post(message);
  };
  const ended: string[] = [];
  const big = store.getMany(Array.from({ length: 20_000 }, (_, i) => i % 600)).then(() => ended.push('big'));
  const small = Array.from({ length: 200 }, async (_, i) => {
    assert.deepEqual(await store.getMany([i, i + 1]), [i, i + 1].map(documentOf));
    ended.push('small');
  });
  await Promise.all([big, ...small]);
  assert.equal(ended.at(-1), 'big');
  // 40 if every message is full; a slow machine ends messages at their time limit.
  assert.ok(sent.length >= 40 && sent.length < 150, `${sent.length} messages for 201 reads`);
  assert.ok(Math.max(...sent) <= 512);
});

test('a missing passage fails its own read and no other of the message', async (t) => {
  const [shard] = await writeShards(t, [4]);
  const store = await openForTest(t, [{ ...shard!, rows: 6 }]);
  const reads = [[0], [1, 5], [3, 2], [4], [2]].map((rows) => store.getMany(rows));
  const results = await Promise.allSettled(reads);
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.code)),
    [[documentOf(0)], 'INTERNAL', [documentOf(3), documentOf(2)], 'INTERNAL', [documentOf(2)]],
  );
});

test('a missing, truncated or foreign file is refused at opening', async (t) => {
  const shards = await writeShards(t, [3, 3]);
  truncateSync(shards[1]!.path, 5000);
  await assert.rejects(SqlitePassageStore.open(shards), trawlError('INDEX_FILE_TRUNCATED', /passages-1\.sqlite/));
  rmSync(shards[0]!.path);
  await assert.rejects(SqlitePassageStore.open(shards), trawlError('INDEX_FILE_MISSING', /passages-0\.sqlite/));
});

test('an aborted signal stops a read before it starts and between messages', async (t) => {
  const store = await openForTest(t, await writeShards(t, [600]));
  await assert.rejects(store.getMany([1], AbortSignal.abort()), trawlError('CANCELLED'));
  const controller = new AbortController();
  const rows = Array.from({ length: 100_000 }, (_, i) => i % 600);
  const reading = store.getMany(rows, controller.signal);
  setImmediate(() => controller.abort());
  await assert.rejects(reading, trawlError('CANCELLED'));
  assert.deepEqual(await store.getMany([2]), [documentOf(2)]);
});

test('closing waits for running reads to their last message, and refuses later ones', async (t) => {
  const store = await openForTest(t, await writeShards(t, [600]));
  const rows = Array.from({ length: 20_000 }, (_, i) => i % 600);
  const ended: string[] = [];
  const reading = store.getMany(rows).then((documents) => ended.push(`${documents.length} documents`));
  const closing = store.close().then(() => ended.push('closed'));
  await assert.rejects(store.getMany([1]), trawlError('NOT_READY', /closed/));
  await Promise.all([reading, closing, store.close()]);
  assert.deepEqual(ended, ['20000 documents', 'closed']);
  await assert.rejects(store.getMany([]), trawlError('NOT_READY'));
});

/** A store and its reader threads, in the order of their start. */
async function withThreads(
  t: Parameters<typeof writeShards>[0],
  shards: readonly PassageShard[],
): Promise<{ store: SqlitePassageStore; threads: Worker[] }> {
  const threads: Worker[] = [];
  const onWorker = (worker: Worker): number => threads.push(worker);
  process.on('worker', onWorker);
  t.after(() => process.off('worker', onWorker));
  const store = await openForTest(t, shards);
  assert.equal(threads.length, 1);
  return { store, threads };
}

test('a reader that dies is replaced, and its rows are read again', async (t) => {
  const { store, threads } = await withThreads(t, await writeShards(t, [600]));
  const rows = Array.from({ length: 50_000 }, (_, i) => (i * 7) % 600);
  for (let death = 0; death < 5; death++) {
    const reading = Promise.all([store.getMany(rows), store.getMany([1, 2]), store.find('id', ['p-3', 'p-5'], 2)]);
    await threads.at(-1)!.terminate();
    const [many, few, found] = await reading;
    assert.deepEqual(many, rows.map(documentOf));
    assert.deepEqual(few, [1, 2].map(documentOf));
    assert.deepEqual(found, await store.find('id', ['p-3', 'p-5'], 2));
    assert.equal(store.failure, undefined);
  }
});

test('a read that kills every reader fails alone, and others are answered', async (t) => {
  const { store, threads } = await withThreads(t, await writeShards(t, [600]));
  const deadly = store.getMany(Array.from({ length: 2_000_000 }, (_, i) => i % 600));
  const failing = assert.rejects(deadly, trawlError('INTERNAL', /2 reader threads died.*Try again/));
  await threads[0]!.terminate();
  // The second reader gets the read as soon as it has started.
  while (threads.length < 2) await sleep(1);
  await once(threads[1]!, 'message');
  await nextIteration();
  await threads[1]!.terminate();
  await failing;
  assert.deepEqual(await store.getMany([3]), [documentOf(3)]);
});

test('readers that die far apart are all replaced: an error of a look-up between two deaths is an answer, too', async (t) => {
  const shards = await writeShards(t, [600]);
  const database = new Database(shards[0]!.path);
  database.exec('DROP INDEX passages_by_title');
  database.close();
  const { store, threads } = await withThreads(t, shards);
  for (let death = 0; death < 4; death++) {
    await assert.rejects(store.find('title', ['a', 'b'], 1), trawlError('NOT_SUPPORTED'));
    const deaths = threads.length;
    await threads.at(-1)!.terminate();
    while (threads.length === deaths && store.failure === undefined) await sleep(1);
  }
  assert.equal(store.failure, undefined);
  assert.deepEqual(await store.getMany([3]), [documentOf(3)]);
});

test('when no reader can be started reads fail, and the store reports its failure', async (t) => {
  const shards = await writeShards(t, [600]);
  const { store, threads } = await withThreads(t, shards);
  rmSync(shards[0]!.path);
  await threads[0]!.terminate();
  await assert.rejects(store.getMany([1]), trawlError('INTERNAL', /can no longer be read.*Reload the index/));
  assert.equal(store.failure?.code, 'INTERNAL');
  await assert.rejects(store.find('id', ['a'], 1), trawlError('INTERNAL', /can no longer be read/));
  await store.close();
});

test('another reader that cannot open the files, because they were moved, fails no read', async (t) => {
  const shards = await writeShards(t, [600]);
  const { path } = shards[0]!;
  // Keeps the reader busy for so long that another one is started.
  const long = JSON.stringify('a'.repeat(2 ** 25));
  const database = new Database(path);
  database.pragma('synchronous = OFF');
  database.prepare('UPDATE passages SET document = ? WHERE row = 1').run(long);
  database.close();
  const store = await openForTest(t, shards);
  await store.getMany([0]);
  renameSync(path, `${path}-away`);
  const started: Worker[] = [];
  const onWorker = (worker: Worker): number => started.push(worker);
  process.on('worker', onWorker);
  t.after(() => process.off('worker', onWorker));
  const first = store.getMany([1]);
  const second = store.getMany([2]);
  while (started.length === 0) await sleep(5);
  await new Promise((resolve) => started[0]!.once('exit', resolve));
  assert.deepEqual(await second, [documentOf(2)]);
  assert.ok((await first)[0] === long);
  assert.deepEqual(await store.getMany([3]), [documentOf(3)]);
});

test('an open store does not keep the process alive; a read and a close do', async (t) => {
  const shards = JSON.stringify(await writeShards(t, [600]));
  const { status, stdout, stderr } = runModule(`
    const { SqlitePassageStore } = await import('#root/src/index/passages/sqlite-passage-store.js');
    const store = await SqlitePassageStore.open(${shards});
    const rows = Array.from({ length: 5000 }, (_, i) => i % 600);
    const reading = store.getMany(rows).then(({ length }) => console.log('read', length));
    await store.close();
    console.log('closed');
    await reading;
    const idle = await SqlitePassageStore.open(${shards});
    await idle.getMany([1]);
    console.log('idle');
  `);
  assert.deepEqual([status, stdout, stderr], [0, 'read 5000\nclosed\nidle\n', '']);
});
