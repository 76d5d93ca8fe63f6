import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallThread } from '../../../src/base/system/thread-calls.ts';
import type { PassageReply, PassageRequest } from '../../../src/index/passages/passage-protocol.ts';
import { DocumentsRead } from '../../../src/index/passages/passage-read.ts';
import { documentOf, writeShards } from './passage-files.ts';

test('a reader stops at its time limit, after at least one row', async (t) => {
  const shards = await writeShards(t, [50]);
  const thread = new CallThread<PassageRequest, PassageReply>(
    new URL('../../../src/index/passages/passage-worker.js', import.meta.url),
    { workerData: shards },
  );
  t.after(() => thread.close());
  const rows = Float64Array.of(9, 3, 7, 3);
  const reply = await thread.ask({ type: 'get', what: 'document', rows, budgetMs: -1 });
  // In file order: row 3 first, with its repeat.
  assert.deepEqual(reply, {
    type: 'documents',
    documents: [null, documentOf(3), null, documentOf(3)],
    failures: [],
  });
});

test('rows that a reader had no time for are read again, into their place', async () => {
  const read = new DocumentsRead('document', [10, 11, 12, 13], undefined);
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
