import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inOrder } from '../../bulk-search/in-order.ts';

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
  for await (const result of inOrder(numbers(20), 4, work, NEVER)) found.push(result);
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
    3,
    work,
    NEVER,
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
  for await (const _ of inOrder(numbers(6), 3, work, NEVER)) atWork.push(running);
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
    for await (const result of inOrder(source(), 2, async (i) => i, NEVER)) found.push(result);
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
    for await (const result of inOrder(source(), 4, work, NEVER)) found.push(result);
  }, /one/);
  assert.deepEqual(found, [0]);
  assert.deepEqual(stopped.sort(), [2, 3, 4]);
  assert.equal(closed, true);
});
