import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { TrawlError } from '../../../src/base/errors.ts';
import type { ModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { type ModelEncoder, openModelEncoder } from '../../../src/encoder/open-encoder.ts';
import { EncoderPool, type EncoderPoolOptions } from '../../../src/encoder/pool/encoder-pool.ts';
import type { EncodeResult } from '../../../src/encoder/text-encoder.ts';

const DIMENSION = 2;

/** An encoder whose workers run `fake-encoder-worker.ts`, in a pool that it does not share. */
async function fakePool(
  t: TestContext,
  workers: number,
  more: Partial<EncoderPoolOptions> = {},
): Promise<ModelEncoder> {
  const prefixes = { query: '', passage: '' };
  const identity = { name: 'fake', dimension: DIMENSION, prefixes, maxTokens: { query: 32, passage: 32 } };
  const pool = await openModelEncoder({
    model: { identity, graphPath: '', externalData: [] as readonly string[] } as ModelFolder,
    workers,
    workerUrl: new URL('../fake-encoder-worker.js', import.meta.url),
    ...more,
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
  const { vectors, outcomes } = await pool.encode(texts, { inputType: 'query' });
  assert.equal(vectors.length, texts.length * DIMENSION);
  assert.deepEqual(
    [...vectors],
    texts.flatMap((text) => [text.length, text.length]),
  );
  assert.ok(outcomes.every((outcome) => outcome.ok && outcome.tokens === 1 && !outcome.truncated));
});

test('a device without enough memory is reported with the smaller batches, which a thread that starts later keeps', async (t) => {
  const warnings: string[] = [];
  const pool = await fakePool(t, 1, { batchTokens: 4096, onWarning: (warning) => warnings.push(warning) });
  for (const text of ['a', 'full', 'b', 'die', 'c', 'full']) await pool.encode([text], { inputType: 'query' });
  assert.deepEqual(
    warnings.map((warning) => /did not have enough free memory for a batch.* at most (\d+) tokens/.exec(warning)?.[1]),
    ['2048', '1024'],
  );
});

test('of two devices, only the one without enough memory gets smaller batches, and the warning names it', async (t) => {
  const warnings: string[] = [];
  const onWarning = (warning: string): unknown => warnings.push(warning);
  const pool = await fakePool(t, 2, { cudaDevices: [0, 1], batchTokens: 4096, onWarning });
  const encode = (text: string): Promise<EncodeResult> => pool.encode([text], { inputType: 'query' });
  await encode('full');
  assert.deepEqual(warnings.splice(0), [
    'cuda:0 did not have enough free memory for a batch. Its batches have at most 2048 tokens from now on.',
  ]);
  // The first text keeps cuda:0 busy.
  await Promise.all([encode('sleep 20'), encode('full')]);
  assert.deepEqual(warnings.splice(0), [
    'cuda:1 did not have enough free memory for a batch. Its batches have at most 2048 tokens from now on.',
  ]);
  await encode('full');
  assert.deepEqual(warnings, [
    'cuda:0 did not have enough free memory for a batch. Its batches have at most 1024 tokens from now on.',
  ]);
});

test('the threads of one device share its smaller batches', async (t) => {
  const warnings: string[] = [];
  const onWarning = (warning: string): unknown => warnings.push(warning);
  const pool = await fakePool(t, 2, { cudaDevices: [0, 0], batchTokens: 4096, onWarning });
  const encode = (text: string): Promise<EncodeResult> => pool.encode([text], { inputType: 'query' });
  await encode('full');
  // The first text keeps the first thread busy.
  await Promise.all([encode('sleep 20'), encode('full')]);
  await encode('full');
  assert.deepEqual(
    warnings.map((warning) => /^cuda:0 .* at most (\d+) tokens/.exec(warning)?.[1]),
    ['2048', '1024', '512'],
  );
});

test('a lone text may be divided among the idle threads, at most four, and others among none', async (t) => {
  const threadsOf = async (pool: ModelEncoder, texts = ['threads']): Promise<number[]> => {
    const { vectors } = await pool.encode(texts, { inputType: 'query' });
    return texts.map((_, i) => vectors[i * DIMENSION]!);
  };
  const pool = await fakePool(t, 3);
  assert.deepEqual(await threadsOf(pool), [3]);
  const slow = pool.encode(['sleep 300'], { inputType: 'query' });
  assert.deepEqual(await threadsOf(pool), [2]);
  await slow;
  // The last of several texts that wait is the only one with idle threads beside it.
  assert.deepEqual(await threadsOf(pool, ['threads', 'threads']), [1, 2]);
  assert.deepEqual(await threadsOf(await fakePool(t, 1)), [1]);
  assert.deepEqual(await threadsOf(await fakePool(t, 6)), [4]);
});

test('encoding no texts returns no vectors', async (t) => {
  const pool = await fakePool(t, 1);
  assert.deepEqual(await pool.encode([], { inputType: 'query' }), {
    vectors: new Float32Array(0),
    outcomes: [],
    waitedMs: 0,
  });
});

test('a text that fails has a zero row, and the other texts of its call succeed', async (t) => {
  const pool = await fakePool(t, 2);
  const result = await pool.encode(['a', 'fail', 'ccc'], { inputType: 'query' });
  assert.deepEqual(outcomeCodes(result), ['ok', 'ENCODING_FAILED', 'ok']);
  assert.deepEqual([...result.vectors], [1, 1, 0, 0, 3, 3]);
});

test('a single query does not wait for the end of a long batch', async (t) => {
  const pool = await fakePool(t, 1);
  let batchDone = false;
  const batch = pool.encode(new Array(60).fill('sleep 10'), { inputType: 'query' }).then(() => (batchDone = true));
  await pool.encode(['lone'], { inputType: 'query' });
  assert.equal(batchDone, false);
  await batch;
});

test('aborting a call rejects it and drops its unstarted texts', async (t) => {
  const pool = await fakePool(t, 1);
  const controller = new AbortController();
  const batch = pool.encode(new Array(1000).fill('sleep 20'), { inputType: 'query', signal: controller.signal });
  const rejected = assert.rejects(batch, isCancelled);
  while (pool.load.texts === 0) await sleep(5);
  controller.abort();
  await rejected;
  await pool.encode(['after'], { inputType: 'query' });
  const { texts, droppedTexts } = pool.load;
  assert.ok(droppedTexts > 0, 'all texts ran');
  assert.equal(texts + droppedTexts, 1001);
});

test('a call whose signal is already aborted is rejected', async (t) => {
  const pool = await fakePool(t, 1);
  await assert.rejects(pool.encode(['a'], { inputType: 'query', signal: AbortSignal.abort() }), isCancelled);
});

test('a text whose thread dies fails, and later texts work', async (t) => {
  const pool = await fakePool(t, 2);
  for (const killer of ['die', 'throw']) {
    const result = await pool.encode([killer], { inputType: 'query' });
    assert.deepEqual(outcomeCodes(result), ['ENCODER_FAILED'], killer);
    assert.deepEqual(outcomeCodes(await pool.encode(['a', 'b', 'c', 'd'], { inputType: 'query' })), [
      'ok',
      'ok',
      'ok',
      'ok',
    ]);
  }
});

test('if a text kills its thread, the other texts of its call and of other calls still succeed', async (t) => {
  const pool = await fakePool(t, 1);
  const measured = await pool.encode(['a', 'b'], { inputType: 'query' });
  assert.deepEqual(outcomeCodes(measured), ['ok', 'ok']);
  const busy = pool.encode(['sleep 30'], { inputType: 'query' });
  const mixed = pool.encode(['bb', 'die', 'ccc'], { inputType: 'query' });
  const others = Array.from({ length: 20 }, (_, i) => pool.encode(['x'.repeat(i)], { inputType: 'passage' }));
  await busy;
  const result = await mixed;
  assert.deepEqual(outcomeCodes(result), ['ok', 'ENCODER_FAILED', 'ok']);
  assert.deepEqual([...result.vectors], [2, 2, 0, 0, 3, 3]);
  for (const [i, other] of (await Promise.all(others)).entries()) assert.deepEqual([...other.vectors], [i, i]);
});

test('several small calls share a message to a worker, and each gets its own results', async (t) => {
  const pool = await fakePool(t, 1);
  await pool.encode(['a', 'b', 'c'], { inputType: 'query' });
  const before = pool.load.chunks;
  const busy = pool.encode(['sleep 20'], { inputType: 'query' });
  const calls = Array.from({ length: 400 }, (_, i) =>
    pool.encode(i % 7 === 0 ? ['fail', 'x'.repeat(i)] : ['x'.repeat(i)], {
      inputType: i % 5 === 0 ? 'passage' : 'query',
    }),
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

test('texts of a cancelled call are counted as dropped and no longer as waiting', async (t) => {
  const pool = await fakePool(t, 1);
  const busy = pool.encode(['sleep 20'], { inputType: 'query' });
  const controller = new AbortController();
  const left = pool.encode(['a', 'b', 'c'], { inputType: 'query', signal: controller.signal });
  const stayed = pool.encode(['d'], { inputType: 'query' });
  controller.abort();
  await assert.rejects(left, isCancelled);
  assert.equal(pool.load.waitingTexts, 1);
  await Promise.all([busy, stayed]);
  const { droppedTexts, texts, waitingTexts } = pool.load;
  assert.deepEqual({ droppedTexts, texts, waitingTexts }, { droppedTexts: 3, texts: 2, waitingTexts: 0 });
});

test('a pool keeps working if threads die between calls that succeed', async (t) => {
  const pool = await fakePool(t, 1);
  for (let i = 0; i < 6; i++) {
    assert.deepEqual(outcomeCodes(await pool.encode(['die'], { inputType: 'query' })), ['ENCODER_FAILED']);
    assert.deepEqual(outcomeCodes(await pool.encode(['fine'], { inputType: 'query' })), ['ok']);
  }
});

test('a pool whose threads keep dying gives up, and every text fails', async (t) => {
  const pool = await fakePool(t, 2);
  const result = await pool.encode(new Array(200).fill('die'), { inputType: 'query' });
  assert.ok(result.outcomes.every((outcome) => !outcome.ok));
  assert.deepEqual(outcomeCodes(await pool.encode(['fine'], { inputType: 'query' })), ['ENCODER_FAILED']);
});

test('closing finishes the running texts, cancels the waiting ones and can be repeated', async (t) => {
  const pool = await fakePool(t, 1);
  const running = pool.encode(['sleep 50'], { inputType: 'query' });
  const waiting = pool.encode(['a', 'b'], { inputType: 'query' });
  const rejected = assert.rejects(waiting, isCancelled);
  await Promise.all([pool.close(), pool.close()]);
  assert.deepEqual(outcomeCodes(await running), ['ok']);
  await rejected;
  await assert.rejects(pool.encode(['late'], { inputType: 'query' }), isCancelled);
});

test('an invalid number of workers is refused', async () => {
  for (const workers of [0, -1, 1.5, Number.NaN]) {
    await assert.rejects(EncoderPool.open({ model: {} as ModelFolder, workers }), /workers is .*whole number/);
  }
});
