import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallThread } from '../../../src/base/system/thread-calls.ts';
import type { PassageReply, PassageRequest } from '../../../src/index/passages/passage-protocol.ts';
import { PassageBatch, PassageRead } from '../../../src/index/passages/passage-read.ts';
import { documentOf, writeShards } from './passage-files.ts';

test('a reader stops at its time limit, after at least one row', async (t) => {
  const shards = await writeShards(t, [50]);
  const thread = new CallThread<PassageRequest, PassageReply>(
    new URL('../../../src/index/passages/passage-worker.js', import.meta.url),
    { workerData: shards },
  );
  t.after(() => thread.close());
  const reply = await thread.ask({ kind: 'document', items: [9, 3, 7, 3], budgetMs: -1 });
  // In file order: row 3 first, with its repeat.
  assert.deepEqual(reply, { values: [null, documentOf(3), null, documentOf(3)], failures: [] });
});

test('a reader answers look-ups whole, without a time limit', async (t) => {
  const shards = await writeShards(t, [50]);
  const thread = new CallThread<PassageRequest, PassageReply>(
    new URL('../../../src/index/passages/passage-worker.js', import.meta.url),
    { workerData: shards },
  );
  t.after(() => thread.close());
  const reply = await thread.ask({ kind: { by: 'id', limit: 1 }, items: ['p-3', 'none', 'p-9'], budgetMs: -1 });
  assert.deepEqual(reply, { values: [[3], [], [9]], failures: [] });
});

test('a look-up has a message of its own with as many keys as fit, whatever else waits', () => {
  const keys = Array.from({ length: 1_000 }, (_, i) => `p-${i}`);
  const waiting = [
    new PassageRead({ by: 'id', limit: 1 }, keys, undefined),
    ...Array.from({ length: 200 }, (_, row) => new PassageRead('document', [row], undefined)),
    new PassageRead({ by: 'id', limit: 1 }, ['p-1'], undefined),
  ];
  const sizes: (number | undefined)[] = [];
  while (waiting.length > 0) sizes.push(PassageBatch.take(waiting, 512).request(5)?.items.length);
  assert.deepEqual(sizes, [512, 200, 1]);
});

test('rows that a reader had no time for are read again, into their place', async () => {
  const read = new PassageRead('document', [10, 11, 12, 13], undefined);
  assert.deepEqual(read.take(3), [0, 1, 2]);
  read.accept(1, 'eleven');
  read.accept(0, null);
  read.accept(2, null);
  assert.equal(read.hasWork, true);
  assert.deepEqual(read.take(10), [0, 2, 3]);
  assert.equal(read.hasWork, false);
  for (const [place, text] of [
    [3, 'thirteen'],
    [0, 'ten'],
    [2, 'twelve'],
  ] as const) {
    read.accept(place, text);
  }
  assert.deepEqual(await read.result, ['ten', 'eleven', 'twelve', 'thirteen']);
});
