import { parentPort, workerData } from 'node:worker_threads';
import { bug, serializeError, TrawlError } from '../errors.ts';
import {
  type EncodedChunk,
  type FromWorker,
  type ToWorker,
  valuesPerInput,
  type WorkerSetup,
  type WorkInput,
  type WorkPart,
} from './encoder-messages.ts';
import { RunGate } from './run-gate.ts';
import { CUTS, type TextKind, type TruncateSide } from './text-encoder.ts';
import type { TextModel } from './text-model.ts';
import { groupByLength, packByLength } from './token-batch.ts';
import type { TokenizedText } from './truncation.ts';

/**
 * The thread of one model: loads the model, then answers chunks until it is told to close. It ends by itself, never by
 * being terminated, so that no run is cut off.
 */
if (parentPort === null) throw bug('The encoder worker was started outside a worker thread');
const port = parentPort;
const { model, device, gate: sharedGate } = workerData as WorkerSetup;
const gate = new RunGate(sharedGate);
const width = valuesPerInput(model);

let textModel: TextModel;
try {
  textModel = await guarded(async () => {
    // Loading the native library is native work too: ended in the middle, it aborts the process.
    const { TextModel } = await import('./text-model.ts');
    return TextModel.open(model, device);
  });
  if (device.triesFirst) await textModel.canGroup(guarded);
  port.on('message', (message: ToWorker) => void handle(message));
  send({ type: 'ready', separator: textModel.separator });
} catch (error) {
  send({ type: 'failed', error: serializeError(error) });
}

async function handle(message: ToWorker): Promise<void> {
  if (message.type === 'close') {
    await guarded(() => textModel.close());
    port.close();
    return;
  }
  if (message.uncounted.length > 0) send({ type: 'counted', tokens: count(message.uncounted) });
  const started = performance.now();
  const inputs = flat(message.parts);
  const vectors = new Float32Array(inputs.length * width);
  const tokens = new Int32Array(inputs.length);
  const cuts = new Uint8Array(inputs.length);
  const failures: EncodedChunk['failures'][number][] = [];
  const fail = (index: number, error: unknown) => {
    failures.push({ index, error: serializeError(asEncodingError(error)) });
  };
  const tokenize = (index: number): TokenizedText | null => {
    try {
      const { input, kind, truncate } = inputs[index]!;
      const text = textModel.tokenize(input, kind, truncate);
      tokens[index] = text.ids.length;
      cuts[index] = CUTS.indexOf(text.cut);
      return text;
    } catch (error) {
      fail(index, error);
      return null;
    }
  };
  /** Texts of one run share its failure, unless each is tried again alone. */
  const run = async (places: readonly number[], texts: readonly TokenizedText[], length: number): Promise<void> => {
    try {
      const rows = await guarded(() => textModel.run(texts, length));
      for (const [i, place] of places.entries()) vectors.set(rows[i]!, place * width);
    } catch (error) {
      if (places.length === 1) return fail(places[0]!, error);
      for (const [i, place] of places.entries()) await run([place], [texts[i]!], texts[i]!.ids.length);
    }
  };
  const texts = inputs.map((_, index) => tokenize(index));
  const lengths = texts.map((text) => text?.ids.length ?? 0);
  const tokenizedMs = performance.now() - started;
  const planned = await batches(lengths);
  // The trial that planning may begin with is not what these texts cost.
  const begun = performance.now();
  for (const { places, length } of planned) {
    const batch = places.flatMap((place) => texts[place] ?? []);
    if (batch.length > 0) await run(places, batch, length);
  }
  const elapsedMs = tokenizedMs + performance.now() - begun;
  const chunk: FromWorker = { type: 'encoded', vectors, tokens, cuts, failures, groups: textModel.groups, elapsedMs };
  port.postMessage(chunk, [vectors.buffer, tokens.buffer, cuts.buffer]);
}

/** Which texts run together, each with the length they are padded to. */
async function batches(lengths: readonly number[]): Promise<{ places: number[]; length: number }[]> {
  if (device.batchTokens !== null) return packByLength(lengths, device.batchTokens);
  let groups = groupByLength(lengths);
  const isAlone = groups.every(({ length }) => length === 1);
  if (!isAlone && !(await textModel.canGroup(guarded))) groups = lengths.map((_, place) => [place]);
  return groups.map((places) => ({ places, length: lengths[places[0]!]! }));
}

function count(parts: readonly WorkPart[]): Int32Array {
  return Int32Array.from(flat(parts), ({ input, kind, truncate }) => {
    try {
      return textModel.tokenize(input, kind, truncate).ids.length;
    } catch {
      // It fails again, with its reason, when its turn comes.
      return 0;
    }
  });
}

function flat(parts: readonly WorkPart[]): { input: WorkInput; kind: TextKind; truncate: TruncateSide }[] {
  return parts.flatMap(({ inputs, kind, truncate }) => inputs.map((input) => ({ input, kind, truncate })));
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
