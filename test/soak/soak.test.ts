import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileFolder, sampleIndex } from '../cli/run-trawl.ts';
import { soak } from './soak.ts';

/** Reader threads of passages that an index has at the most. */
const MOST_READERS = 4;

function byKind(targets: Readonly<Record<string, number>>): Record<'passages' | 'pipes' | 'events' | 'others', number> {
  const kinds = { passages: 0, pipes: 0, events: 0, others: 0 };
  for (const [target, count] of Object.entries(targets)) {
    if (target.endsWith('/passages.sqlite')) kinds.passages += count;
    else if (target === 'pipe') kinds.pipes += count;
    else if (/^anon_inode:\[event(?:fd|poll)\]$/.test(target)) kinds.events += count;
    else kinds.others += count;
  }
  return kinds;
}

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
  const [before, after] = [byKind(idleBefore.targets), byKind(idleAfter.targets)];
  const told = JSON.stringify({ before: idleBefore.targets, after: idleAfter.targets });
  // Each reader has the passages open, and the handles of a thread's event loop.
  const begun = after.passages - before.passages;
  assert.ok(begun >= 0 && after.passages <= MOST_READERS, told);
  assert.ok(after.pipes <= before.pipes + 2 * begun, told);
  assert.ok(after.events <= before.events + 2 * begun, told);
  // The connection that asks /metrics may be kept.
  assert.ok(after.others <= before.others + 2, told);
  const growth = (end.rssBytes - warm.rssBytes) / 1e6;
  assert.ok(growth < 150, `${growth.toFixed(0)} MB more at the end than after the warm-up`);
  assert.equal(result.exit, 0);
});
