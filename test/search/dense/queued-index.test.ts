import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { TrawlError } from '../../../src/base/errors.ts';
import { openEngine } from '../../../src/engine/vectors/open-engine.ts';
import type { SearchResult } from '../../../src/engine/vectors/vector-index.ts';
import { QueuedIndex, type QueuedIndexOptions } from '../../../src/search/dense/queued-index.ts';
import { hitsOf, normalRows, ternaryRows, writeSource } from '../../engine/vectors/index-files.ts';
import { seededNormal, seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';
import { FakeIndex } from '../fakes.ts';
import { HeldIndex, pendingCallbacks } from '../held-index.ts';

/** A search of the fake index: a query of value v finds the rows from v on. */
function ask(index: QueuedIndex, values: number[], k: number, signal?: AbortSignal): Promise<SearchResult> {
  return index.search({
    queries: Float32Array.from(values),
    count: values.length,
    k,
    signal,
  });
}

function held(options: QueuedIndexOptions = {}): { engine: HeldIndex; index: QueuedIndex } {
  const engine = new HeldIndex(new FakeIndex([]));
  return { engine, index: new QueuedIndex(engine, options) };
}

/** Releases batch after batch until the queue is empty. */
async function drain(engine: HeldIndex): Promise<void> {
  for (await pendingCallbacks(); engine.held.length > 0; await pendingCallbacks()) engine.held[0]!.release();
}

test('a search starts at once when the engine is idle', async () => {
  const { engine, index } = held();
  const asked = ask(index, [3], 2);
  await pendingCallbacks();
  assert.deepEqual(engine.batches, [1]);
  await drain(engine);
  assert.deepEqual([...(await asked).rows], [3, 4]);
});

test('a queue with a number of queries for its batches makes batches of that number', async () => {
  const { engine, index } = held({ batchQueries: 5 });
  const asked = [
    ask(
      index,
      Array.from({ length: 12 }, () => 1),
      1,
    ),
    ask(index, [2, 3], 1),
  ];
  await pendingCallbacks();
  await drain(engine);
  await Promise.all(asked);
  assert.deepEqual(engine.batches, [5, 5, 4]);
});

test('for throughput two batches run at a time, and searches are taken whole and in their order', async () => {
  const { engine, index } = held({ batchQueries: 3 });
  const ended: number[] = [];
  const asked = [0, 1, 2, 3].map((i) => ask(index, [i, i, i], 1).then(() => ended.push(i)));
  await pendingCallbacks();
  assert.deepEqual([engine.held.length, index.load.waitingQueries], [2, 6], 'two are in the engine');
  engine.held[0]!.release();
  await pendingCallbacks();
  assert.deepEqual(ended, [0], 'the first search has all of its answers');
  assert.equal(engine.held.length, 2, 'the third began in its place');
  await drain(engine);
  await Promise.all(asked);
  assert.deepEqual(ended, [0, 1, 2, 3]);
  assert.deepEqual(engine.batches, [3, 3, 3, 3]);
});

test('closing for throughput waits for both batches and for those that wait', async () => {
  const { engine, index } = held({ batchQueries: 2 });
  const asked = [ask(index, [0, 1], 1), ask(index, [2, 3], 1), ask(index, [4, 5], 1)];
  await pendingCallbacks();
  let closed = false;
  const closing = index.close().then(() => (closed = true));
  engine.held[0]!.release();
  await pendingCallbacks();
  assert.equal(closed, false);
  await drain(engine);
  await Promise.all([...asked, closing]);
  assert.deepEqual(engine.batches, [2, 2, 2]);
});

test('the next batch gathers while one runs, and each search gets its own answer', async () => {
  const { engine, index } = held();
  const first = ask(index, [0], 1);
  await pendingCallbacks();
  const others = [ask(index, [1, 4], 2), ask(index, [2], 5), ask(index, [3], 1)];
  await pendingCallbacks();
  assert.deepEqual(engine.batches, [1], 'one batch at a time');
  assert.equal(index.load.waitingQueries, 4);
  await drain(engine);
  assert.deepEqual(engine.batches, [1, 4]);
  assert.deepEqual([...(await first).rows], [0]);
  const results = await Promise.all(others);
  assert.deepEqual(
    results.map(({ counts, rows }) => [[...counts], [...rows]]),
    [
      [
        [2, 1],
        [1, 2, 4, -1],
      ],
      [[3], [2, 3, 4, -1, -1]],
      [[1], [3]],
    ],
  );
  const { queries, batches, batchSizes, waitingQueries } = index.load;
  assert.deepEqual([queries, batches, batchSizes, waitingQueries], [5, 2, [1, 0, 1], 0]);
});

test('searches of the same tick of the event loop share the first batch', async () => {
  const { engine, index } = held();
  const asked = [1, 2, 3].map((value) => Promise.resolve().then(() => ask(index, [value], 1)));
  await drain(engine);
  await Promise.all(asked);
  assert.deepEqual(engine.batches, [3]);
});

test('a batch waits briefly for 32 queries, only while more are expected', async () => {
  let expectsMore = true;
  const { engine, index } = held({ expectsMore: () => expectsMore });
  const few = [ask(index, [1], 1), ask(index, [2], 1)];
  await pendingCallbacks();
  assert.deepEqual(engine.batches, [], 'two queries are not enough');
  const many = ask(index, new Array(30).fill(3), 1);
  await pendingCallbacks();
  assert.deepEqual(engine.batches[0], 8, 'the first batch has the default size');
  expectsMore = false;
  await drain(engine);
  await Promise.all([...few, many]);
  expectsMore = true;
  const before = engine.batches.length;
  const patient = ask(index, [4], 1);
  await pendingCallbacks();
  assert.equal(engine.batches.length, before);
  while (engine.batches.length === before) await sleep(5);
  await drain(engine);
  assert.deepEqual([...(await patient).rows], [4], 'no other query came');
  const last = ask(index, [5], 1);
  await pendingCallbacks();
  expectsMore = false;
  const another = ask(index, [6], 1);
  await pendingCallbacks();
  assert.equal(engine.batches.at(-1), 2, 'both at once, because no more are expected');
  await drain(engine);
  await Promise.all([last, another]);
});

test('a batch with the rest of a search that has waited long enough starts at once', async () => {
  let expectsMore = false;
  const { engine, index } = held({ expectsMore: () => expectsMore });
  const searched = ask(index, new Array(17).fill(1), 1);
  await pendingCallbacks();
  await sleep(60);
  expectsMore = true;
  // Of another queue class, so that it moves before the rest of the first.
  const late = ask(index, [2], 100);
  for (let batch = 0; batch < 2; batch++) {
    engine.held[0]!.release();
    await pendingCallbacks();
  }
  assert.deepEqual(engine.batches, [8, 8, 1]);
  await drain(engine);
  await Promise.all([searched, late]);
});

test('closing starts a batch that is held back', async () => {
  const { engine, index } = held({ expectsMore: () => true });
  const asked = ask(index, [1], 1);
  const closing = index.close();
  await drain(engine);
  assert.deepEqual([...(await asked).rows], [1]);
  await closing;
});

test('a large search is split, and a later single query is answered before its end', async () => {
  const { engine, index } = held();
  const ended: string[] = [];
  const values = Array.from({ length: 3_000 }, (_, i) => i % 5);
  const big = ask(index, values, 1).then((result) => {
    ended.push('big');
    return result;
  });
  await pendingCallbacks();
  const lone = ask(index, [4], 1).then(() => ended.push('lone'));
  await drain(engine);
  assert.deepEqual([...(await big).rows], values);
  await lone;
  assert.deepEqual(ended, ['lone', 'big']);
  assert.ok(Math.max(...engine.batches) <= 1_024, `${engine.batches}`);
});

test('several large searches share the engine evenly', async () => {
  const { engine, index } = held();
  const progress: number[] = [];
  const blocker = ask(index, [0], 1);
  await pendingCallbacks();
  const bigs = [0, 1, 2].map((value) => ask(index, new Array<number>(64).fill(value), 1));
  for (await pendingCallbacks(); engine.held.length > 0; await pendingCallbacks()) {
    const { queries } = engine.held[0]!.request;
    if (queries.length > 1) progress.push(new Set(queries).size);
    engine.held[0]!.release();
  }
  await Promise.all([blocker, ...bigs]);
  assert.ok(
    progress.every((searches) => searches === 3),
    `searches in each batch: ${progress}`,
  );
});

test('a search for many more hits has a batch of its own, in round-robin order', async () => {
  const { engine, index } = held();
  const blocker = ask(index, [0], 1);
  await pendingCallbacks();
  const asked = [ask(index, [1], 3), ask(index, [2], 2_000), ask(index, [3], 16)];
  const ks: number[] = [];
  for (await pendingCallbacks(); engine.held.length > 0; await pendingCallbacks()) {
    ks.push(engine.held[0]!.request.k);
    engine.held[0]!.release();
  }
  await Promise.all([blocker, ...asked]);
  assert.deepEqual(ks, [1, 16, 2_000]);
});

test('searches with different filters never share a batch', async (t) => {
  const source = await writeSource(await tempFolder(t), normalRows(50, 4, 1));
  const engine = await openEngine(source, { threads: 1 });
  const index = new QueuedIndex(engine);
  t.after(() => index.close());
  const { RowBitmap } = await import('../../../src/engine/row-bitmap.ts');
  const even = new RowBitmap(50);
  for (let row = 0; row < 50; row += 2) even.add(row);
  const queries = normalRows(1, 4, 2).values;
  const results = await Promise.all([
    index.search({ queries, count: 1, k: 10 }),
    index.search({ queries, count: 1, k: 10, filter: even }),
  ]);
  assert.ok(results[1].rows.every((row) => row % 2 === 0));
  assert.ok(!results[0].rows.every((row) => row % 2 === 0));
  assert.equal(index.load.batches, 2);
});

test('a cancelled search drops its own queries and no others', async () => {
  const { engine, index } = held();
  const blocker = ask(index, [0], 1);
  await pendingCallbacks();
  const controller = new AbortController();
  const left = ask(index, [1, 1, 1, 1], 1, controller.signal);
  const stayed = ask(index, [3], 1);
  controller.abort();
  await assert.rejects(left, trawlError('CANCELLED'));
  assert.equal(index.load.waitingQueries, 1);
  await drain(engine);
  assert.deepEqual([...(await stayed).rows], [3]);
  await blocker;
  assert.deepEqual(engine.batches, [1, 1]);
  assert.equal(index.load.droppedQueries, 4);
});

test('a running batch is cancelled only when all of its searches are', async () => {
  const { engine, index } = held();
  const [first, second] = [new AbortController(), new AbortController()];
  const both = [ask(index, [1], 1, first.signal), ask(index, [2], 1, second.signal)];
  await pendingCallbacks();
  assert.deepEqual(engine.batches, [2]);
  first.abort();
  await assert.rejects(both[0]!, trawlError('CANCELLED'));
  assert.equal(engine.held[0]!.request.signal!.aborted, false);
  second.abort();
  await assert.rejects(both[1]!, trawlError('CANCELLED'));
  await pendingCallbacks();
  assert.equal(engine.held.length, 0);
  const later = ask(index, [4], 1);
  await drain(engine);
  assert.deepEqual([...(await later).rows], [4]);
});

test('an aborted signal and an invalid request are refused without the engine', async () => {
  const { engine, index } = held();
  await assert.rejects(ask(index, [1], 1, AbortSignal.abort()), trawlError('CANCELLED'));
  await assert.rejects(ask(index, [Number.NaN], 1), trawlError('NON_FINITE_QUERY'));
  await assert.rejects(ask(index, [1], 0), RangeError);
  assert.deepEqual(engine.batches, []);
  assert.equal(index.load.waitingQueries, 0);
});

test('a search without queries gets an empty answer', async () => {
  const index = new QueuedIndex(new FakeIndex([]));
  const { counts, rows } = await ask(index, [], 3);
  assert.deepEqual([[...counts], [...rows]], [[], []]);
});

test('when a batch fails each search is tried alone, and only the invalid one fails', async () => {
  const log: string[] = [];
  const engine = new FakeIndex(log, {
    before() {
      const { queries } = engine.requests.at(-1)!;
      if (queries.includes(3)) throw new TrawlError('SCORE_OVERFLOW', 'too large');
    },
  });
  const index = new QueuedIndex(engine);
  const asked = [ask(index, [1], 1), ask(index, [3, 2], 1), ask(index, [4], 1)];
  const results = await Promise.allSettled(asked);
  assert.deepEqual(
    results.map((result) => (result.status === 'fulfilled' ? [...result.value.rows] : result.reason.code)),
    [[1], 'SCORE_OVERFLOW', [4]],
  );
  assert.deepEqual(log, ['search 4 × 1', 'search 1 × 1', 'search 2 × 1', 'search 1 × 1']);
  assert.equal(index.load.waitingQueries, 0);
});

test('a query with a score beyond float32 fails alone: the others of its batch have their hits, and nothing is searched again', async (t) => {
  const rows = { values: Float32Array.of(1, 1, 3e38, 3e38), dimension: 2 };
  const engine = await openEngine(await writeSource(await tempFolder(t), rows), { threads: 1 });
  let searches = 0;
  const search = engine.search.bind(engine);
  engine.search = (request) => {
    searches++;
    return search(request);
  };
  const index = new QueuedIndex(engine);
  t.after(() => index.close());
  const [alone, beside] = await Promise.all([
    index.search({ queries: Float32Array.of(0.5, 0.5), count: 1, k: 5 }),
    index.search({ queries: Float32Array.of(0.5, 0.5, 1, 1), count: 2, k: 1 }),
  ]);
  assert.deepEqual([[...alone.rows.subarray(0, 2)], alone.overflows], [[1, 0], undefined]);
  assert.deepEqual([beside.rows[0], [...beside.counts], beside.overflows], [1, [1, 0], new Map([[1, 1]])]);
  assert.equal(searches, 1);
});

test('closing waits for earlier searches, refuses later ones, and can be repeated', async () => {
  const { engine, index } = held();
  const asked = [ask(index, [1], 1), ask(index, new Array<number>(40).fill(2), 1)];
  const closing = Promise.all([index.close(), index.close()]);
  await assert.rejects(ask(index, [1], 1), trawlError('NOT_READY'));
  await pendingCallbacks();
  assert.equal(engine.closed, false);
  await drain(engine);
  await Promise.all([...asked, closing]);
  assert.equal(engine.closed, true);
});

for (const rows of [normalRows(700, 16, 5), ternaryRows(300, 8, 6)]) {
  test(`every answer through the queue has the same bits as alone (${rows.dimension} dimensions)`, async (t) => {
    const source = await writeSource(await tempFolder(t), rows, { shards: 2 });
    const engine = await openEngine(source, { threads: 2 });
    const index = new QueuedIndex(engine);
    t.after(() => index.close());
    const random = seededRandom(7);
    const normal = seededNormal(8);
    const { dimension } = rows;
    const calls = Array.from({ length: 250 }, () => {
      const count = random() < 0.1 ? Math.floor(random() * 400) : 1 + Math.floor(random() * 4);
      const k = [1, 3, 5, 10, 17, 100, 900][Math.floor(random() * 7)]!;
      const leavesAfter = random() < 0.2 ? Math.floor(random() * 6) : null;
      return { count, k, leavesAfter, queries: Float32Array.from({ length: count * dimension }, () => normal()) };
    });
    const answers = await Promise.all(
      calls.map(async ({ count, k, queries, leavesAfter }, i) => {
        for (let wait = i % 7; wait > 0; wait--) await pendingCallbacks();
        const controller = new AbortController();
        const asked = index.search({ queries, count, k, signal: controller.signal });
        if (leavesAfter !== null) {
          for (let wait = leavesAfter; wait > 0; wait--) await pendingCallbacks();
          controller.abort();
        }
        return asked.catch((error: TrawlError) => error.code);
      }),
    );
    let cancelled = 0;
    for (const [i, answer] of answers.entries()) {
      const { queries, count, k, leavesAfter } = calls[i]!;
      if (typeof answer === 'string') {
        assert.equal(answer, 'CANCELLED');
        assert.notEqual(leavesAfter, null);
        cancelled++;
        continue;
      }
      const direct = await engine.search({ queries, count, k });
      assert.deepEqual(answer.counts, direct.counts);
      assert.deepEqual(hitsOf(answer), hitsOf(direct));
      assert.equal(answer.exact, true);
    }
    assert.ok(cancelled > 0);
    const { batches, queries, waitingQueries, droppedQueries } = index.load;
    assert.equal(waitingQueries, 0);
    assert.ok(batches < 250, `${batches} batches for ${queries} queries, ${droppedQueries} dropped`);
  });
}

test('more searches may wait than a function takes arguments', async () => {
  const { engine, index } = held();
  const count = 150_000;
  const asked = Array.from({ length: count }, () => ask(index, [3], 1));
  await pendingCallbacks();
  assert.equal(index.load.waitingQueries + engine.batches[0]!, count);
  await drain(engine);
  const rows = await Promise.all(asked.map(async (each) => (await each).rows[0]));
  assert.ok(rows.every((row) => row === 3));
});
