import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { EncoderPool } from '../../src/embedding/encoder-pool.ts';
import type { ModelFolder } from '../../src/embedding/model-folder.ts';
import type { EncodeResult } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';

const DIMENSION = 2;

/** A pool over `fake-encoder-worker.ts`. */
async function fakePool(t: TestContext, workers: number): Promise<EncoderPool> {
  const identity = { name: 'fake', dimension: DIMENSION, maxTokens: { query: 32, passage: 32 } };
  const pool = await EncoderPool.open({
    model: { identity } as ModelFolder,
    workers,
    workerUrl: new URL('./fake-encoder-worker.js', import.meta.url),
  });
  t.after(() => pool.close());
  return pool;
}

function outcomeCodes(result: EncodeResult): string[] {
  return result.outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.error.code));
}

const isCancelled = (error: unknown) => error instanceof TrawlError && error.code === 'CANCELLED';

test('results come back in the order of the texts', async (t) => {
  const pool = await fakePool(t, 3);
  const texts = Array.from({ length: 500 }, (_, i) => (i % 50 === 0 ? `sleep ${i % 7}` : 'x'.repeat(i)));
  const { vectors, outcomes } = await pool.encode(texts, { kind: 'query' });
  assert.equal(vectors.length, texts.length * DIMENSION);
  assert.deepEqual(
    [...vectors],
    texts.flatMap((text) => [text.length, text.length]),
  );
  assert.ok(outcomes.every((outcome) => outcome.ok && outcome.tokens === 1 && !outcome.truncated));
});

test('no texts give no vectors', async (t) => {
  const pool = await fakePool(t, 1);
  assert.deepEqual(await pool.encode([], { kind: 'query' }), {
    vectors: new Float32Array(0),
    outcomes: [],
    waitedMs: 0,
  });
});

test('one failing text fails alone and has a zero row', async (t) => {
  const pool = await fakePool(t, 2);
  const result = await pool.encode(['a', 'fail', 'ccc'], { kind: 'query' });
  assert.deepEqual(outcomeCodes(result), ['ok', 'ENCODING_FAILED', 'ok']);
  assert.deepEqual([...result.vectors], [1, 1, 0, 0, 3, 3]);
});

test('calls take turns: a lone query does not wait for a long batch', async (t) => {
  const pool = await fakePool(t, 1);
  let batchDone = false;
  const batch = pool.encode(new Array(60).fill('sleep 10'), { kind: 'query' }).then(() => (batchDone = true));
  await pool.encode(['lone'], { kind: 'query' });
  assert.equal(batchDone, false);
  await batch;
});

test('aborting rejects at once and drops what has not begun', async (t) => {
  const pool = await fakePool(t, 1);
  const controller = new AbortController();
  const batch = pool.encode(new Array(1000).fill('sleep 20'), { kind: 'query', signal: controller.signal });
  const rejected = assert.rejects(batch, isCancelled);
  setTimeout(() => controller.abort(), 30);
  const started = performance.now();
  await rejected;
  await pool.encode(['after'], { kind: 'query' });
  // They would take 20 s.
  assert.ok(performance.now() - started < 10_000, 'the thousand texts were not run');
});

test('a signal that is aborted already rejects without work', async (t) => {
  const pool = await fakePool(t, 1);
  await assert.rejects(pool.encode(['a'], { kind: 'query', signal: AbortSignal.abort() }), isCancelled);
});

test('texts of a thread that died fail, and the next ones work', async (t) => {
  const pool = await fakePool(t, 2);
  for (const killer of ['die', 'throw']) {
    const result = await pool.encode([killer], { kind: 'query' });
    assert.deepEqual(outcomeCodes(result), ['ENCODING_FAILED'], killer);
    assert.deepEqual(outcomeCodes(await pool.encode(['a', 'b', 'c', 'd'], { kind: 'query' })), [
      'ok',
      'ok',
      'ok',
      'ok',
    ]);
  }
});

test('a text that kills its thread takes no other text with it, its own call or another', async (t) => {
  const pool = await fakePool(t, 1);
  const measured = await pool.encode(['a', 'b'], { kind: 'query' });
  assert.deepEqual(outcomeCodes(measured), ['ok', 'ok']);
  const busy = pool.encode(['sleep 30'], { kind: 'query' });
  const mixed = pool.encode(['bb', 'die', 'ccc'], { kind: 'query' });
  const others = Array.from({ length: 20 }, (_, i) => pool.encode(['x'.repeat(i)], { kind: 'passage' }));
  await busy;
  const result = await mixed;
  assert.deepEqual(outcomeCodes(result), ['ok', 'ENCODING_FAILED', 'ok']);
  assert.deepEqual([...result.vectors], [2, 2, 0, 0, 3, 3]);
  for (const [i, other] of (await Promise.all(others)).entries()) assert.deepEqual([...other.vectors], [i, i]);
});

test('small calls meet in one message to a worker, and each gets its own results back', async (t) => {
  const pool = await fakePool(t, 1);
  await pool.encode(['a', 'b', 'c'], { kind: 'query' });
  const before = pool.load.chunks;
  const busy = pool.encode(['sleep 20'], { kind: 'query' });
  const calls = Array.from({ length: 400 }, (_, i) =>
    pool.encode(i % 7 === 0 ? ['fail', 'x'.repeat(i)] : ['x'.repeat(i)], { kind: i % 5 === 0 ? 'passage' : 'query' }),
  );
  assert.equal(pool.load.waitingTexts, 400 + 58);
  await busy;
  for (const [i, result] of (await Promise.all(calls)).entries()) {
    assert.deepEqual([...result.vectors], i % 7 === 0 ? [0, 0, i, i] : [i, i]);
    assert.deepEqual(outcomeCodes(result), i % 7 === 0 ? ['ENCODING_FAILED', 'ok'] : ['ok']);
  }
  const { chunks, texts, waitingTexts } = pool.load;
  assert.ok(chunks - before < 200, `${chunks - before} messages for 401 calls`);
  assert.deepEqual([texts, waitingTexts], [3 + 1 + 458, 0]);
});

test('texts of a caller that went away are counted as dropped and no longer as waiting', async (t) => {
  const pool = await fakePool(t, 1);
  const busy = pool.encode(['sleep 20'], { kind: 'query' });
  const controller = new AbortController();
  const left = pool.encode(['a', 'b', 'c'], { kind: 'query', signal: controller.signal });
  const stayed = pool.encode(['d'], { kind: 'query' });
  controller.abort();
  await assert.rejects(left, isCancelled);
  assert.equal(pool.load.waitingTexts, 1);
  await Promise.all([busy, stayed]);
  const { droppedTexts, texts, waitingTexts } = pool.load;
  assert.deepEqual({ droppedTexts, texts, waitingTexts }, { droppedTexts: 3, texts: 2, waitingTexts: 0 });
});

test('deaths between successes do not use the pool up', async (t) => {
  const pool = await fakePool(t, 1);
  for (let i = 0; i < 6; i++) {
    assert.deepEqual(outcomeCodes(await pool.encode(['die'], { kind: 'query' })), ['ENCODING_FAILED']);
    assert.deepEqual(outcomeCodes(await pool.encode(['fine'], { kind: 'query' })), ['ok']);
  }
});

test('a pool whose threads die again and again gives up, and every text fails', async (t) => {
  const pool = await fakePool(t, 2);
  const result = await pool.encode(new Array(200).fill('die'), { kind: 'query' });
  assert.ok(result.outcomes.every((outcome) => !outcome.ok));
  assert.deepEqual(outcomeCodes(await pool.encode(['fine'], { kind: 'query' })), ['ENCODING_FAILED']);
});

test('closing lets the texts in hand finish, cancels the others and can be repeated', async (t) => {
  const pool = await fakePool(t, 1);
  const inHand = pool.encode(['sleep 50'], { kind: 'query' });
  const waiting = pool.encode(['a', 'b'], { kind: 'query' });
  const rejected = assert.rejects(waiting, isCancelled);
  await Promise.all([pool.close(), pool.close()]);
  assert.deepEqual(outcomeCodes(await inHand), ['ok']);
  await rejected;
  await assert.rejects(pool.encode(['late'], { kind: 'query' }), isCancelled);
});

test('a number of workers that cannot be is refused', async () => {
  for (const workers of [0, -1, 1.5, Number.NaN]) {
    await assert.rejects(EncoderPool.open({ model: {} as ModelFolder, workers }), /workers is .*whole number/);
  }
});
