import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inParallel } from '../../src/base/in-parallel.ts';
import { trawlError } from '../helpers/trawl-error.ts';

test('every item is worked on once, in order, and no more at once than asked for', async () => {
  for (const atOnce of [1, 3, 50]) {
    const begun: number[] = [];
    let [running, most] = [0, 0];
    await inParallel(
      Array.from({ length: 20 }, (_, i) => i),
      atOnce,
      async (item) => {
        begun.push(item);
        most = Math.max(most, ++running);
        await sleep(item % 3);
        running--;
      },
    );
    assert.deepEqual(begun, [...Array(20).keys()]);
    assert.equal(most, Math.min(atOnce, 20));
  }
  await inParallel([], 4, () => assert.fail('there is no item'));
});

test('the first error aborts the running calls, begins no other and is thrown when they have ended', async () => {
  const events: string[] = [];
  const first = new Error('the first');
  const work = async (item: number, signal: AbortSignal): Promise<void> => {
    events.push(`${item} begins`);
    if (item === 1) throw first;
    await new Promise<void>((ended) => signal.addEventListener('abort', () => ended()));
    await sleep(20);
    events.push(`${item} ends`);
    throw new Error('a consequence');
  };
  await assert.rejects(inParallel([0, 1, 2, 3], 2, work), (error) => error === first);
  assert.deepEqual(events, ['0 begins', '1 begins', '0 ends']);
});

test('an abort from outside reaches the running calls, and no other begins', async () => {
  const stop = new AbortController();
  const begun: number[] = [];
  const work = async (item: number, signal: AbortSignal): Promise<void> => {
    begun.push(item);
    if (item === 1) stop.abort('SIGINT');
    assert.equal(signal.aborted, item === 1);
  };
  await assert.rejects(inParallel([0, 1, 2], 1, work, stop.signal), trawlError('CANCELLED'));
  assert.deepEqual(begun, [0, 1]);
});
