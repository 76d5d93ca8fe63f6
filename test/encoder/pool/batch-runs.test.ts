import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packByLength, type TextBatch } from '../../../src/encoder/inference/length-groups.ts';
import { isOutOfMemory, runFailure } from '../../../src/encoder/inference/token-batch.ts';
import { runBatches } from '../../../src/encoder/pool/batch-runs.ts';

/** As onnxruntime's CUDA provider reports it. */
const ALLOCATOR =
  "Error: Non-zero status code returned while running MatMul node. Name:'/encoder/layer.0/MatMul' Status Message: " +
  '/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, ' +
  'onnxruntime::Stream*, bool, onnxruntime::WaitNotificationFn) Failed to allocate memory for requested buffer of size 2830172160';

/** A session that has memory for `tokens` tokens. It keeps the batches that it ran, and fails on each text of `poison`. */
function fakeSession(tokens: number, lengths: readonly number[], poison: readonly number[] = []) {
  const ran: TextBatch[] = [];
  const tried: number[] = [];
  const failures = new Map<number, unknown>();
  const limits: number[] = [];
  return {
    ran,
    tried,
    failures,
    limits,
    runAll: (batches: readonly TextBatch[], batchTokens: number | null) =>
      runBatches(batches, lengths, {
        batchTokens,
        async run(batch) {
          const size = { rows: batch.rows, length: batch.length };
          tried.push(size.rows * size.length);
          if (size.rows * size.length > tokens) throw runFailure(new Error(ALLOCATOR), size);
          if (batch.indexes.some((index) => poison.includes(index))) throw runFailure(new Error('NaN'), size);
          ran.push(batch);
        },
        failed: (index, error) => failures.set(index, error),
        onSmaller: (limit) => limits.push(limit),
      }),
  };
}

const indexesOf = (batches: readonly TextBatch[]): number[] =>
  batches.flatMap(({ indexes }) => indexes).sort((a, b) => a - b);

test('a batch for which a GPU has not enough memory is halved until it fits, and so are the later ones', async () => {
  const lengths = Array.from({ length: 200 }, (_, i) => 20 + (i % 3) * 100);
  const session = fakeSession(2_100, lengths);
  const batches = packByLength(lengths, 16_384);
  await session.runAll(batches, 16_384);
  assert.deepEqual(
    indexesOf(session.ran),
    lengths.map((_, i) => i),
    'every text once',
  );
  assert.deepEqual([...session.failures], []);
  assert.ok(session.ran.every(({ rows, length }) => rows * length <= 2_100));
  assert.ok(
    session.ran.every(({ indexes, length }) => indexes.every((index) => lengths[index]! <= length)),
    'no text is longer than its batch',
  );
  const [first] = batches;
  assert.ok(
    session.limits.length >= 2 && session.limits.every((limit, i) => i === 0 || limit <= session.limits[i - 1]! / 2),
  );
  assert.equal(session.limits[0], Math.floor(first!.rows / 2) * first!.length);
  // Each failure halves the limit; no larger batch is tried afterwards.
  assert.equal(session.tried.filter((tokens) => tokens > 2_100).length, session.limits.length);
});

test('a text that is too long for the memory fails alone, with advice; the others get their vectors', async () => {
  const lengths = [512, 30, 30, 30];
  const session = fakeSession(100, lengths);
  await session.runAll(packByLength(lengths, 16_384), 16_384);
  assert.deepEqual(indexesOf(session.ran), [1, 2, 3]);
  assert.deepEqual([...session.failures.keys()], [0]);
  assert.match(
    String(session.failures.get(0)),
    /a text of 512 tokens: .*Failed to allocate.*not have enough free memory/,
  );
});

test('a text at fault fails alone, in a divided batch too; unpadded batches are not divided into halves', async () => {
  const lengths = [40, 40, 40, 40, 40, 40, 40, 40];
  const session = fakeSession(300, lengths, [5]);
  await session.runAll(packByLength(lengths, 16_384), 16_384);
  assert.deepEqual([indexesOf(session.ran), [...session.failures.keys()]], [[0, 1, 2, 3, 4, 6, 7], [5]]);
  const unpadded = fakeSession(100, lengths);
  await unpadded.runAll([{ indexes: [0, 1, 2, 3], length: 40, rows: 4 }], null);
  assert.deepEqual([unpadded.tried, unpadded.limits], [[160, 40, 40, 40, 40], []]);
});

test('the padding rows of a batch are left out before its text fails for want of memory', async () => {
  const session = fakeSession(100, [90]);
  await session.runAll([{ indexes: [0], length: 96, rows: 4 }], 16_384);
  assert.deepEqual([session.ran.map(({ rows }) => rows), [...session.failures]], [[1], []]);
});

test('what CUDA, cuBLAS and cuDNN say about memory is recognised, and nothing else', () => {
  for (const text of [
    ALLOCATOR,
    'CUDA failure 2: out of memory ; GPU=0 ; hostname=node-1 ; file=cuda_allocator.cc ; line=46 ; expr=cudaMalloc((void**)&p, size);',
    'CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; expr=cublasCreate(&cublas_handle_);',
    'CUDNN failure 4: CUDNN_STATUS_ALLOC_FAILED ; GPU=0',
  ]) {
    assert.ok(isOutOfMemory(text), text);
  }
  for (const text of [
    'CUDA failure 700: an illegal memory access was encountered ; GPU=0',
    'CUDNN failure 4: CUDNN_STATUS_INTERNAL_ERROR',
    'Invalid rank for input: input_ids Got: 1 Expected: 2',
    'CUDA failure 222: the provided PTX was compiled with an unsupported toolchain.',
  ]) {
    assert.ok(!isOutOfMemory(text), text);
  }
});
