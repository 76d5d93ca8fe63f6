import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileFolder, sampleIndex } from '../cli/run-trawl.ts';
import { leftOpen } from './handles.ts';
import { soak } from './soak.ts';

const skip = process.platform === 'linux' ? false : 'memory and handles are read in /proc, which this system has not';

test('under full load with bad clients every answer is right, and memory and handles stay', { skip }, async () => {
  const index = await sampleIndex(await fileFolder());
  const result = await soak({ index, seconds: 20, goodClients: 12, hostileClients: 12, seed: 7 });
  assert.deepEqual(result.wrong, {});
  assert.deepEqual(result.failures, []);
  assert.ok(result.requests > 100, `${result.requests} answers`);
  const { idleBefore, warm, end, idleAfter } = result.memory;
  // libuv's four and a reader of cold passages begin when they are first needed.
  assert.ok(
    idleAfter.threads <= idleBefore.threads + 8,
    `${idleBefore.threads} threads before, ${idleAfter.threads} after`,
  );
  assert.deepEqual(leftOpen(idleBefore.targets, idleAfter.targets), []);
  const growth = (end.rssBytes - warm.rssBytes) / 1e6;
  assert.ok(growth < 150, `${growth.toFixed(0)} MB more at the end than after the warm-up`);
  assert.equal(result.exit, 0);
});

test('what a server leaves open is told by kind, and a begun reader of passages is none of it', () => {
  const before = { socket: 2, pipe: 15, 'anon_inode:[eventfd]': 6, '/x/passages.sqlite': 1 };
  const reader = { pipe: 17, 'anon_inode:[eventfd]': 7, 'anon_inode:[eventpoll]': 1, '/x/passages.sqlite': 2 };
  assert.deepEqual(leftOpen(before, { ...before, ...reader }), []);
  assert.deepEqual(leftOpen(before, { ...before, socket: 5 }), ['3 more others (at most 2)']);
  assert.deepEqual(leftOpen(before, { ...before, ...reader, pipe: 19 }), ['4 more pipes (at most 2)']);
  assert.deepEqual(leftOpen(before, { ...before, '/x/passages.sqlite': 6 }), ['5 more passages (at most 3)']);
});
