import { parentPort, workerData } from 'node:worker_threads';
import type { SerializedError } from '../../src/base/errors.ts';
import type { EncodedChunk, ToWorker, WorkerSetup } from '../../src/encoder/pool/encoder-messages.ts';

/**
 * A worker thread for tests of the encoder pool. Every value of a text's vector is the text's length. When it counts tokens,
 * each character is one; an encoded text reports one token. The text "die" exits the thread, "throw" throws in it, "fail"
 * reports that this text failed, "sleep <ms>" takes that long, after "full" batches have half as many tokens, and the values of
 * "threads" are the threads that may divide the run.
 */
const port = parentPort!;
const { model, device } = workerData as WorkerSetup;
const dimension = model.identity.dimension;
let { batchTokens } = device;

port.on('message', async (message: ToWorker) => {
  if (message.type === 'close') {
    port.close();
    return;
  }
  if (batchTokens !== null) batchTokens = Math.min(batchTokens, message.batchTokens ?? batchTokens);
  const uncounted = message.uncounted.flatMap((part) => part.inputs);
  if (uncounted.length > 0) {
    const tokens = Int32Array.from(uncounted, (input) => (typeof input === 'string' ? input.length : 0));
    port.postMessage({ type: 'counted', tokens });
  }
  const started = performance.now();
  const inputs = message.parts.flatMap((part) => part.inputs);
  const vectors = new Float32Array(inputs.length * dimension);
  const failures: { index: number; error: SerializedError }[] = [];
  for (const [index, input] of inputs.entries()) {
    const text = typeof input === 'string' ? input : input.query;
    if (text === 'die') process.exit(3);
    if (text === 'full' && batchTokens !== null) batchTokens /= 2;
    if (text === 'throw') throw new Error('thrown in the worker');
    if (text === 'fail') failures.push({ index, error: { code: 'ENCODING_FAILED', message: 'failed', details: {} } });
    else vectors.fill(text === 'threads' ? message.threads : text.length, index * dimension, (index + 1) * dimension);
    const pause = /^sleep (\d+)/.exec(text)?.[1];
    if (pause !== undefined) await new Promise((resolve) => setTimeout(resolve, Number(pause)));
  }
  const chunk = {
    type: 'encoded',
    vectors,
    tokens: new Int32Array(inputs.length).fill(1),
    truncations: new Uint8Array(inputs.length),
    failures,
    canGroup: null,
    batchTokens,
    elapsedMs: performance.now() - started,
  } satisfies EncodedChunk;
  port.postMessage(chunk);
});
port.postMessage({ type: 'ready', separator: null });
