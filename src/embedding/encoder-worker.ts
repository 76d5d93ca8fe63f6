import { parentPort, workerData } from 'node:worker_threads';
import { bug, serializeError, TrawlError } from '../errors.ts';
import type { FromWorker, ToWorker, WorkerSetup } from './encoder-messages.ts';
import { RunGate } from './run-gate.ts';
import type { SingleTextEncoder } from './single-text-encoder.ts';
import { CUTS } from './text-encoder.ts';

/**
 * The thread of one encoder: loads the model, then answers chunks until it is told to close. It ends by itself, never by
 * being terminated, so that no run is cut off.
 */
if (parentPort === null) throw bug('The encoder worker was started outside a worker thread');
const port = parentPort;
const { model, gate: sharedGate } = workerData as WorkerSetup;
const gate = new RunGate(sharedGate);
const dimension = model.identity.dimension;

let encoder: SingleTextEncoder;
try {
  encoder = await guarded(async () => {
    // Loading the native library is native work too: ended in the middle, it aborts the process.
    const { SingleTextEncoder } = await import('./single-text-encoder.ts');
    return SingleTextEncoder.open(model);
  });
  port.on('message', (message: ToWorker) => void handle(message));
  send({ type: 'ready', separator: encoder.separator });
} catch (error) {
  send({ type: 'failed', error: serializeError(error) });
}

async function handle(message: ToWorker): Promise<void> {
  if (message.type === 'close') {
    await guarded(() => encoder.close());
    port.close();
    return;
  }
  const started = performance.now();
  const { inputs, kind, truncate } = message;
  const vectors = new Float32Array(inputs.length * dimension);
  const tokens = new Int32Array(inputs.length);
  const cuts = new Uint8Array(inputs.length);
  const failures = [];
  for (const [index, input] of inputs.entries()) {
    try {
      const text = await guarded(() => encoder.encode(input, kind, truncate));
      vectors.set(text.vector, index * dimension);
      tokens[index] = text.tokens;
      cuts[index] = CUTS.indexOf(text.cut);
    } catch (error) {
      failures.push({ index, error: serializeError(asEncodingError(error)) });
    }
  }
  const elapsedMs = performance.now() - started;
  const chunk: FromWorker = { type: 'encoded', vectors, tokens, cuts, failures, elapsedMs };
  port.postMessage(chunk, [vectors.buffer, tokens.buffer, cuts.buffer]);
}

function send(message: FromWorker): void {
  port.postMessage(message);
}

/** Runs native work unless the process is ending: then it waits for the end, which is near. */
async function guarded<T>(work: () => Promise<T>): Promise<T> {
  if (!gate.enter()) return new Promise<never>(() => {});
  try {
    return await work();
  } finally {
    gate.leave();
  }
}

function asEncodingError(error: unknown): TrawlError {
  if (error instanceof TrawlError) return error;
  return new TrawlError('ENCODING_FAILED', `The encoder failed on a text: ${String(error)}`, { cause: error });
}
