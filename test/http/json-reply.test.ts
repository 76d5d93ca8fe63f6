import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byteLength, writeReply } from '../../src/http/json-reply.ts';

const never = new AbortController().signal;

/** Pieces that take 10 ms each to make, and are each large enough to be a slice. */
function* slowPieces(count: number): Generator<string> {
  for (let i = 0; i < count; i++) {
    const end = performance.now() + 10;
    while (performance.now() < end);
    yield 'é'.repeat(200_000);
  }
}

test('others get their turn while a long reply is written', async () => {
  let turns = 0;
  let writing = true;
  const others = (): void => {
    turns++;
    if (writing) setImmediate(others);
  };
  setImmediate(others);
  const slices = await writeReply(slowPieces(20), never);
  writing = false;
  assert.ok(turns >= 19, `${turns} turns`);
  assert.equal(byteLength(slices), 20 * 400_000);
});

test('writing stops when the client has left', async () => {
  const controller = new AbortController();
  let made = 0;
  function* counted(): Generator<string> {
    for (const piece of slowPieces(20)) {
      made++;
      yield piece;
    }
  }
  setImmediate(() => controller.abort());
  await assert.rejects(writeReply(counted(), controller.signal), { code: 'CANCELLED' });
  assert.ok(made < 5, `${made} pieces`);
});

test('a short reply is one slice', async () => {
  const slices = await writeReply(['{"result":', '[]', '}'], never);
  assert.deepEqual(slices.map(String), ['{"result":[]}']);
});
