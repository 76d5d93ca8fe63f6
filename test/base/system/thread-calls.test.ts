import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { cancelled } from '../../../src/base/abort.ts';
import { CallThread } from '../../../src/base/system/thread-calls.ts';
import type { Asked } from './answering-thread.ts';

function threadOf(t: TestContext, workerData?: string, onEnded?: (failure: Error) => void) {
  const file = new URL('./answering-thread.js', import.meta.url);
  const thread = new CallThread<Asked, number | Uint8Array>(file, { name: 'answering', workerData }, onEnded);
  t.after(() => thread.terminate(cancelled()));
  return thread;
}

test('a thread answers its calls one after another, and buffers move there and back', async (t) => {
  const thread = threadOf(t);
  const order: number[] = [];
  const ask = async (value: number): Promise<void> => void order.push(await thread.ask<number>(value));
  await Promise.all([thread.opened(), ask(9), ask(1)]);
  assert.deepEqual(order, [18, 2]);
  const bytes = Uint8Array.of(1, 2, 3);
  const answer = await thread.ask<Uint8Array>(bytes, [bytes.buffer]);
  assert.deepEqual([...answer], [1, 2, 3]);
  assert.equal(bytes.length, 0);
});

test('an error of a call keeps its code and details, and the next call is answered', async (t) => {
  const thread = threadOf(t);
  await assert.rejects(thread.ask('refuse'), { code: 'EMPTY_QUERY', message: 'Refused.', details: { maxTied: 3 } });
  assert.equal(await thread.ask(2), 4);
});

test('what a thread cannot open fails every call', async (t) => {
  const thread = threadOf(t, 'broken');
  await assert.rejects(thread.opened(), { code: 'MODEL_INVALID' });
  await assert.rejects(thread.ask(1), { code: 'MODEL_INVALID' });
});

test('a thread that ends on its own fails the waiting calls and the later ones', async (t) => {
  const failures: Error[] = [];
  const thread = threadOf(t, undefined, (failure) => failures.push(failure));
  const [died, waiting] = await Promise.allSettled([thread.ask('die'), thread.ask(1)]);
  assert.match(String(died.status === 'rejected' && died.reason), /answering ended with code 3/);
  assert.equal(waiting.status, 'rejected');
  assert.equal(failures.length, 1);
  await assert.rejects(thread.ask(1), failures[0]!);
});

test('closing waits for the calls; terminating fails them with the given error', async (t) => {
  const closed = threadOf(t);
  const answer = closed.ask(5);
  await closed.close();
  assert.equal(await answer, 10);
  const ended = threadOf(t);
  const failed = assert.rejects(ended.ask(5_000_000), { code: 'CANCELLED' });
  await ended.terminate(cancelled());
  await failed;
});
