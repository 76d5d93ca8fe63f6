import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { inOrder } from '../../src/base/in-order.ts';
import { trawlError } from '../helpers/trawl-error.ts';

async function* numbers(count: number, onRead: (i: number) => void = () => undefined): AsyncGenerator<number, void> {
  for (let i = 0; i < count; i++) {
    onRead(i);
    yield i;
  }
}

const NEVER = new AbortController().signal;

test('results come in the order of the items, though later work ends earlier', async () => {
  const found: number[] = [];
  const work = async (i: number): Promise<number> => {
    await sleep((i % 3) * 2);
    return i * 10;
  };
  for await (const result of inOrder(numbers(20), work, { atOnce: 4, signal: NEVER })) found.push(result);
  assert.deepEqual(
    found,
    Array.from({ length: 20 }, (_, i) => i * 10),
  );
});

test('no more items are read than are at work, however slow the reader of the results is', async () => {
  let [read, running, most] = [0, 0, 0];
  const work = async (): Promise<void> => {
    running++;
    most = Math.max(most, running);
    await sleep(1);
    running--;
  };
  let taken = 0;
  for await (const _ of inOrder(
    numbers(50, () => read++),
    work,
    { atOnce: 3, signal: NEVER },
  )) {
    taken++;
    assert.ok(read <= taken + 3, `${read} items read for ${taken} results`);
    await sleep(1);
  }
  assert.equal(taken, 50);
  assert.equal(most, 3);
});

test('while a result is handled, as much other work is under way', async () => {
  let running = 0;
  const work = async (): Promise<void> => {
    running++;
    await sleep(20);
    running--;
  };
  const atWork: number[] = [];
  for await (const _ of inOrder(numbers(6), work, { atOnce: 3, signal: NEVER })) atWork.push(running);
  // All but the last ones: the other two of the first three have ended, or end with it.
  assert.ok(atWork[0]! >= 1 && atWork.at(-1) === 0, String(atWork));
});

test('an error of the source comes after the result that is ready', async () => {
  async function* source(): AsyncGenerator<number, void> {
    yield* numbers(5);
    throw new Error('damaged');
  }
  const found: number[] = [];
  await assert.rejects(async () => {
    for await (const result of inOrder(source(), async (i) => i, { atOnce: 2, signal: NEVER })) found.push(result);
  }, /damaged/);
  assert.deepEqual(found, [0, 1, 2, 3]);
});

test('an error comes at its place, stops the other work and closes the source', async () => {
  const stopped: number[] = [];
  let closed = false;
  async function* source(): AsyncGenerator<number, void> {
    try {
      yield* numbers(10);
    } finally {
      closed = true;
    }
  }
  const work = async (i: number, signal: AbortSignal): Promise<number> => {
    if (i === 1) throw new Error('one');
    if (i < 1) return i;
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    stopped.push(i);
    return i;
  };
  const found: number[] = [];
  await assert.rejects(async () => {
    for await (const result of inOrder(source(), work, { atOnce: 4, signal: NEVER })) found.push(result);
  }, /one/);
  assert.deepEqual(found, [0]);
  assert.deepEqual(stopped.sort(), [2, 3, 4]);
  assert.equal(closed, true);
});

test('an abort stops the running work, and no other begins', async () => {
  const stop = new AbortController();
  const [begun, stopped]: [number[], number[]] = [[], []];
  const work = async (i: number, signal: AbortSignal): Promise<number> => {
    begun.push(i);
    if (i === 0) return i;
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    stopped.push(i);
    throw signal.reason;
  };
  const found: number[] = [];
  await assert.rejects(async () => {
    for await (const result of inOrder(numbers(10), work, { atOnce: 3, signal: stop.signal })) {
      found.push(result);
      stop.abort(new Error('enough'));
    }
  }, /enough/);
  assert.deepEqual([found, begun, stopped], [[0], [0, 1, 2, 3], [1, 2, 3]]);
});

test('after an abort, the oldest running work can end, and its result is not lost', async () => {
  const stop = new AbortController();
  const stopped: number[] = [];
  const work = async (i: number, signal: AbortSignal): Promise<number> => {
    signal.addEventListener('abort', () => stopped.push(i));
    await sleep(1);
    if (i === 1) {
      stop.abort();
      await sleep(5);
    }
    throwIfCancelled(signal);
    return i;
  };
  const found: number[] = [];
  const options = { atOnce: 3, signal: stop.signal, finishesOldest: true };
  await assert.rejects(async () => {
    for await (const result of inOrder(numbers(10), work, options)) {
      found.push(result);
      if (result === 1) assert.deepEqual(stopped, [2, 3]);
    }
  }, trawlError('CANCELLED'));
  assert.deepEqual(found, [0, 1]);
});

test('items that are left after an abort are an error, though all that was begun has ended', async () => {
  const stop = new AbortController();
  const found: number[] = [];
  await assert.rejects(async () => {
    for await (const result of inOrder([0, 1, 2], async (i) => i, { atOnce: 1, signal: stop.signal })) {
      found.push(result);
      stop.abort();
    }
  }, trawlError('CANCELLED'));
  assert.deepEqual(found, [0, 1]);
});
