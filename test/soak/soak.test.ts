import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileFolder, sampleIndex } from '../cli/run-trawl.ts';
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
  // The connection that asks /metrics may be kept, and a reader that began holds a database and the handles of a thread.
  const begun = Math.max(0, idleAfter.threads - idleBefore.threads);
  assert.ok(
    idleAfter.handles <= idleBefore.handles + 2 + 6 * begun,
    `${idleBefore.handles} handles before, ${idleAfter.handles} after`,
  );
  const growth = (end.rssBytes - warm.rssBytes) / 1e6;
  assert.ok(growth < 150, `${growth.toFixed(0)} MB more at the end than after the warm-up`);
  assert.equal(result.exit, 0);
});
