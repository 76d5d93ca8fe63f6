import { dirname } from 'node:path';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { TrawlError } from '../../base/errors.ts';
import { widenFloat16 } from '../../base/system/float16.ts';
import type { Pooling } from '../identity/model-identity.ts';
import { readOnnxFacts } from '../model/onnx-facts.ts';
import { cudaFacts, cudaFull, cudaUnavailable } from './cuda-libraries.ts';
import { checkTokenOutput, chooseOutput } from './graph-outputs.ts';
import { integerProductSettings } from './integer-products.ts';
import { onnxruntime } from './onnxruntime.ts';
import {
  canBeGivenAsBytes,
  POOLED_OUTPUT,
  POOLING_WEIGHTS,
  poolingWeights,
  poolsTokens,
  withPooledOutput,
} from './pooled-graph.ts';
import { isOutOfMemory, runFailure } from './run-failure.ts';
import type { TokenBatch } from './token-batch.ts';

/** The value of each input that an encoder may have, at a position in a row of a batch. */
const INPUT_VALUES: Readonly<Record<string, (batch: TokenBatch, row: number, position: number) => number>> = {
  input_ids: (batch, row, position) => batch.ids[row * batch.length + position]!,
  attention_mask: (batch, row, position) => (position < batch.tokens[row]! ? 1 : 0),
  token_type_ids: (batch, row, position) => batch.types?.[row * batch.length + position] ?? 0,
  position_ids: (_, __, position) => position,
};

/** Keys and values of earlier tokens, which exported decoders take: [batch, heads, earlier tokens, size of a head]. */
const PAST_INPUT = /^past_key_values\.\d+\.(key|value)$/;

interface GraphInput {
  readonly name: string;
  /** The tensor that a batch gives. */
  readonly tensor: (batch: TokenBatch) => Tensor;
}

export interface OnnxSessionOptions {
  /** What the output is used for; decides which output is read if `outputName` is null. */
  readonly use: Pooling | 'score';
  readonly outputName: string | null;
  /** CUDA device number; null for the CPU. */
  readonly cudaDevice: number | null;
  /**
   * Whether to use the weights directly from the mapped external data files, which all sessions of the machine share. If false,
   * each session copies them into the layout that multiplies fastest.
   */
  readonly shareWeights: boolean;
  /**
   * Whether the graph also pools the vectors of the tokens, in float32, if `use` is a pooling of tokens. For padded batches on a GPU:
   * a text's vector then does not leave the device token by token.
   */
  readonly poolsInGraph: boolean;
}

/** A graph's output, row-major, with the shape `dims`. */
export interface GraphOutput {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}

/** Version of onnxruntime and the execution providers that are bundled with it; others need additional libraries. Throws ENCODER_MISSING. */
export function onnxruntimeFacts(): { readonly version: string; readonly providers: readonly string[] } {
  const { env, listSupportedBackends } = onnxruntime();
  const providers = listSupportedBackends()
    .filter((backend) => backend.bundled)
    .map((backend) => backend.name);
  return { version: env.versions.node ?? 'unknown', providers };
}

/**
 * A graph on one CPU thread or one CUDA device. `run` returns a promise but blocks its
 * thread, so sessions live in worker threads. Ending the thread during a run aborts the process.
 */
export class OnnxSession {
  /** Whether the output has one row per text, because the session added the pooling to the graph. */
  readonly isPooled: boolean;
  readonly #session: InferenceSession;
  readonly #inputs: readonly GraphInput[];
  readonly #outputName: string;

  private constructor(session: InferenceSession, path: string, options: OnnxSessionOptions) {
    const { use, outputName } = options;
    this.#session = session;
    this.#inputs = session.inputMetadata.map((input) => checkInput(input, path, use));
    this.isPooled = session.outputNames.includes(POOLED_OUTPUT);
    this.#outputName = this.isPooled ? POOLED_OUTPUT : chooseOutput(session.outputNames, path, use, outputName);
  }

  /** Throws MODEL_INVALID if the graph is not an encoder's, DEVICE_UNAVAILABLE if CUDA cannot be used, ENCODER_MISSING. */
  static async open(path: string, options: OnnxSessionOptions): Promise<OnnxSession> {
    const { cudaDevice, shareWeights, use, outputName, poolsInGraph } = options;
    if (cudaDevice !== null) {
      // Checked first because onnxruntime would print a long report of missing libraries on stderr.
      const { installed, reason } = cudaFacts();
      if (!installed) throw cudaUnavailable(cudaDevice, reason);
    }
    const runtime = onnxruntime();
    const facts = poolsInGraph && poolsTokens(use) ? await readOnnxFacts(path) : undefined;
    const tokenOutput =
      facts !== undefined && (await canBeGivenAsBytes(path, facts.externalData))
        ? chooseOutput(facts.outputs, path, use, outputName)
        : undefined;
    let session: InferenceSession;
    try {
      const settings = {
        // Throws if the CUDA library cannot be loaded. onnxruntime still runs shape operators on the CPU.
        executionProviders: cudaDevice === null ? ['cpu'] : [{ name: 'cuda', deviceId: cudaDevice }],
        executionMode: 'sequential',
        graphOptimizationLevel: 'all',
        intraOpNumThreads: 1,
        interOpNumThreads: 1,
        // Errors only: warnings are about the export of the graph.
        logSeverityLevel: 3,
        extra: {
          session: {
            ...integerProductSettings(),
            ...(shareWeights ? { disable_prepacking: '1' } : {}),
            // A graph that is given by its bytes has no folder.
            ...(tokenOutput === undefined ? {} : { model_external_initializers_file_folder_path: dirname(path) }),
          },
        },
      } as const satisfies InferenceSession.SessionOptions;
      session =
        tokenOutput === undefined
          ? await runtime.InferenceSession.create(path, settings)
          : await runtime.InferenceSession.create(await withPooledOutput(path, tokenOutput), settings);
    } catch (error) {
      const { message } = error as Error;
      if (cudaDevice !== null && isOutOfMemory(message)) throw cudaFull(cudaDevice, message.trim(), error);
      if (cudaDevice !== null && /cuda|cudnn|cublas|backend|provider|shared library/i.test(message)) {
        throw cudaUnavailable(cudaDevice, message.trim(), error);
      }
      throw new TrawlError('MODEL_INVALID', `onnxruntime cannot load ${path}: ${message}`, { cause: error });
    }
    try {
      if (tokenOutput !== undefined) checkTokenOutput(session.outputMetadata, tokenOutput, path);
      return new OnnxSession(session, path, options);
    } catch (error) {
      await session.release();
      throw error;
    }
  }

  /**
   * Runs a batch of at least one row and one token, on one thread whatever `NativeSession` would be given. Throws ENCODER_FAILED.
   */
  async run(batch: TokenBatch, _threads?: number): Promise<GraphOutput> {
    const feeds: Record<string, Tensor> = {};
    for (const { name, tensor } of this.#inputs) feeds[name] = tensor(batch);
    let output: Tensor | undefined;
    try {
      output = (await this.#session.run(feeds, [this.#outputName]))[this.#outputName];
    } catch (error) {
      throw runFailure(error, batch);
    }
    const data = output?.data;
    if (data instanceof Float32Array) return { data, dims: output!.dims };
    if (output?.type === 'float16') return { data: fromFloat16(output.data), dims: output.dims };
    throw new TrawlError(
      'ENCODER_FAILED',
      `The graph's output ${this.#outputName} is ${output?.type ?? 'missing'}; expected float32 or float16. Export the model to ONNX ` +
        'again with such an output, or import its checkpoint.',
    );
  }

  /** Must not be called during a run. */
  async close(): Promise<void> {
    await this.#session.release();
  }
}

function inputTensor(
  type: 'int64' | 'int32',
  batch: TokenBatch,
  valueAt: (batch: TokenBatch, row: number, position: number) => number,
): Tensor {
  const { rows, length } = batch;
  const { Tensor } = onnxruntime();
  // The values are not negative, so the high half of an int64 stays zero, and no BigInt is made for each.
  const step = type === 'int64' ? 2 : 1;
  const halves = new Int32Array(rows * length * step);
  for (let row = 0, at = 0; row < rows; row++) {
    for (let position = 0; position < length; position++, at += step) halves[at] = valueAt(batch, row, position);
  }
  return type === 'int64'
    ? new Tensor('int64', new BigInt64Array(halves.buffer), [rows, length])
    : new Tensor('int32', halves, [rows, length]);
}

/** onnxruntime gives a Float16Array where Node.js has that type (24 and newer), else the bits. */
function fromFloat16(values: Tensor['data']): Float32Array {
  const bits =
    values instanceof Uint16Array
      ? values
      : new Uint16Array((values as Uint8Array).buffer, (values as Uint8Array).byteOffset, values.length);
  return widenFloat16(bits);
}

function checkInput(input: InferenceSession.ValueMetadata, path: string, use: Pooling | 'score'): GraphInput {
  const { name } = input;
  if (name === POOLING_WEIGHTS && poolsTokens(use)) {
    return {
      name,
      tensor: (batch) =>
        new (onnxruntime().Tensor)('float32', poolingWeights(batch, use), [batch.rows, 1, batch.length]),
    };
  }
  const type = input.isTensor ? input.type : 'no tensor';
  if (Object.hasOwn(INPUT_VALUES, name) && (type === 'int64' || type === 'int32')) {
    return { name, tensor: (batch) => inputTensor(type, batch, INPUT_VALUES[name]!) };
  }
  const [, heads, , size] = input.isTensor ? input.shape : [];
  const isPast = PAST_INPUT.test(name) && typeof heads === 'number' && typeof size === 'number';
  if (isPast && (type === 'float32' || type === 'float16')) {
    const data = type === 'float32' ? new Float32Array(0) : new Uint16Array(0);
    return { name, tensor: ({ rows }) => new (onnxruntime().Tensor)(type, data, [rows, heads, 0, size]) };
  }
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has an input ${name} (${type}). Expected only ${Object.keys(INPUT_VALUES).join(', ')} as int64 or ` +
      'int32, and past_key_values of a decoder as float32 or float16 with fixed heads. The graph is not an encoder; it may be an ' +
      'encoder-decoder.',
  );
}
