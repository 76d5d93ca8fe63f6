import assert from 'node:assert/strict';
import { test } from 'node:test';
import { byteLength, writeReply } from '../../src/server/json-reply.ts';

const never = new AbortController().signal;

/** Pieces that take 10 ms each and are larger than a chunk. */
function* slowPieces(count: number): Generator<string> {
  for (let i = 0; i < count; i++) {
    const end = performance.now() + 10;
    while (performance.now() < end);
    yield 'é'.repeat(200_000);
  }
}

test('writing a long reply yields to other requests', async () => {
  let iterations = 0;
  let writing = true;
  const others = (): void => {
    iterations++;
    if (writing) setImmediate(others);
  };
  setImmediate(others);
  const chunks = await writeReply(slowPieces(20), never);
  writing = false;
  assert.ok(iterations >= 19, `${iterations} iterations`);
  assert.equal(byteLength(chunks), 20 * 400_000);
});

test('writing stops when the client disconnects', async () => {
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

test('a short reply is one chunk', async () => {
  const chunks = await writeReply(['{"result":', '[]', '}'], never);
  assert.deepEqual(chunks.map(String), ['{"result":[]}']);
});
