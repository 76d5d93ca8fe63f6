import { parentPort, workerData } from 'node:worker_threads';
import { bug, serializeError, TrawlError } from '../../base/errors.ts';
import { groupByLength, packByLength, type TextBatch } from '../inference/length-groups.ts';
import { valuesPerInput } from '../inference/pooling.ts';
import type { TextModel } from '../inference/text-model.ts';
import { TRUNCATIONS } from '../text-encoder.ts';
import type { WorkInput } from '../tokenizer/text-pair.ts';
import type { TokenizedText, TokenizeOptions } from '../tokenizer/truncation.ts';
import { runBatches } from './batch-runs.ts';
import type { EncodedChunk, FromWorker, ToWorker, WorkerSetup, WorkPart } from './encoder-messages.ts';
import { RunGate } from './run-gate.ts';

/** A worker thread: loads a model and encodes chunks until it gets `close`. Terminating it during a run would abort the process. */
if (parentPort === null) throw bug('The encoder worker was started outside a worker thread');
const port = parentPort;
const { model, device, gate: sharedGate } = workerData as WorkerSetup;
const gate = new RunGate(sharedGate);
const width = valuesPerInput(model);

/** Becomes smaller when the device runs out of memory for a batch of this worker or of another. */
let { batchTokens } = device;
let textModel: TextModel;
void load();

// Not a top-level await: Node warns about one that is unsettled when the process exits.
async function load(): Promise<void> {
  try {
    textModel = await guarded(async () => {
      // Loading the native library also needs the gate: an exit during it would abort the process.
      const { TextModel } = await import('../inference/text-model.ts');
      return TextModel.open(model, { ...device, padsTexts: batchTokens !== null });
    });
    if (device.triesGrouping) await textModel.tryGrouping(guarded);
    port.on('message', (message: ToWorker) => void handle(message));
    send({ type: 'ready', separator: textModel.separator });
  } catch (error) {
    send({ type: 'failed', error: serializeError(error) });
  }
}

async function handle(message: ToWorker): Promise<void> {
  if (message.type === 'close') {
    await guarded(() => textModel.close());
    port.close();
    return;
  }
  if (batchTokens !== null) batchTokens = Math.min(batchTokens, message.batchTokens ?? batchTokens);
  if (message.uncounted.length > 0) send({ type: 'counted', tokens: countTokens(message.uncounted) });
  const started = performance.now();
  const inputs = flatten(message.parts);
  const vectors = new Float32Array(inputs.length * width);
  const tokens = new Int32Array(inputs.length);
  const truncations = new Uint8Array(inputs.length);
  const failures: EncodedChunk['failures'][number][] = [];
  const fail = (index: number, error: unknown): void => {
    const failure =
      error instanceof TrawlError
        ? error
        : new TrawlError('ENCODING_FAILED', `The encoder failed on a text: ${String(error)}`, { cause: error });
    failures.push({ index, error: serializeError(failure) });
  };
  const tokenize = (index: number): TokenizedText | null => {
    try {
      const { input, tokenize } = inputs[index]!;
      const text = textModel.tokenize(input, tokenize);
      tokens[index] = text.ids.length;
      truncations[index] = TRUNCATIONS.indexOf(text.cut);
      return text;
    } catch (error) {
      fail(index, error);
      return null;
    }
  };
  const texts = [...inputs.keys()].map(tokenize);
  const lengths = texts.map((text) => text?.ids.length ?? 0);
  const tokenizedMs = performance.now() - started;
  const batches = await planBatches(lengths);
  // The time of the planning is not part of `elapsedMs`, because it may include the grouping trial.
  const planned = performance.now();
  const tokenized = batches.filter(({ indexes }) => indexes.every((index) => texts[index] !== null));
  await runBatches(tokenized, lengths, {
    batchTokens,
    async run({ indexes, length, rows }) {
      const batch = indexes.map((index) => texts[index]!);
      const made = await guarded(() => textModel.run(batch, length, { rows, threads: message.threads }));
      for (const [i, index] of indexes.entries()) vectors.set(made[i]!, index * width);
    },
    failed: fail,
    onSmaller: (limit) => (batchTokens = limit),
  });
  const elapsedMs = tokenizedMs + performance.now() - planned;
  const { canGroup } = textModel;
  const results = { vectors, tokens, truncations, failures };
  send({ type: 'encoded', ...results, canGroup, batchTokens, elapsedMs }, [vectors, tokens, truncations]);
}

/** Batches of texts that run together, and the padded length of each. */
async function planBatches(lengths: readonly number[]): Promise<TextBatch[]> {
  if (batchTokens !== null) return packByLength(lengths, batchTokens);
  let groups = groupByLength(lengths);
  const allAlone = groups.every(({ length }) => length === 1);
  if (!allAlone && !(await textModel.tryGrouping(guarded))) groups = lengths.map((_, index) => [index]);
  return groups.map((indexes) => ({ indexes, length: lengths[indexes[0]!]!, rows: indexes.length }));
}

function countTokens(parts: readonly WorkPart[]): Int32Array {
  return Int32Array.from(flatten(parts), ({ input, tokenize }) => {
    try {
      return textModel.tokenize(input, tokenize).ids.length;
    } catch {
      // The error is reported when the text is encoded.
      return 0;
    }
  });
}

function flatten(parts: readonly WorkPart[]): { input: WorkInput; tokenize: TokenizeOptions }[] {
  return parts.flatMap(({ inputs, tokenize }) => inputs.map((input) => ({ input, tokenize })));
}

/** Sends a message. The memory of the arrays in `transferred` moves to the receiver. */
function send(message: FromWorker, transferred: readonly { readonly buffer: ArrayBuffer }[] = []): void {
  port.postMessage(
    message,
    transferred.map(({ buffer }) => buffer),
  );
}

/** Runs native work. If the process is exiting, it does not run the work and never resolves, because the thread is about to end. */
async function guarded<T>(work: () => Promise<T>): Promise<T> {
  if (!gate.enter()) return new Promise<never>(() => {});
  try {
    return await work();
  } finally {
    gate.leave();
  }
}
