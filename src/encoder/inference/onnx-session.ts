import { dirname } from 'node:path';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { TrawlError } from '../../base/errors.ts';
import { widenFloat16 } from '../../base/system/float16.ts';
import { WatchedFiles } from '../../engine/native/watched-files.ts';
import type { Pooling } from '../identity/model-identity.ts';
import { invalidModel } from '../model/json-file.ts';
import { readOnnxFacts } from '../model/onnx-facts.ts';
import { cudaFacts, cudaFull, cudaUnavailable } from './cuda-libraries.ts';
import { integerProductSettings } from './int8-runner.ts';
import { onnxruntime } from './onnxruntime.ts';
import {
  canBeGivenAsBytes,
  POOLED_OUTPUT,
  POOLING_WEIGHTS,
  poolingWeights,
  poolsTokens,
  withPooledOutput,
} from './pooled-graph.ts';
import { isOutOfMemory, runFailure, type TokenBatch } from './token-batch.ts';

/** The value of each input that an encoder may have, at a position in a row of a batch. */
const INPUT_VALUES: Readonly<Record<string, (batch: TokenBatch, row: number, position: number) => number>> = {
  input_ids: (batch, row, position) => batch.ids[row * batch.length + position]!,
  attention_mask: (batch, row, position) => (position < batch.tokens[row]! ? 1 : 0),
  token_type_ids: (batch, row, position) => batch.types?.[row * batch.length + position] ?? 0,
  position_ids: (_, __, position) => position,
};

/** Keys and values of earlier tokens, which exported decoders take: [batch, heads, earlier tokens, size of a head]. */
const PAST_INPUT = /^past_key_values\.\d+\.(key|value)$/;

/** Names that exporters give to outputs, by use, the most common first. */
const TOKEN_OUTPUTS = ['last_hidden_state', 'token_embeddings'];
const OUTPUTS: Readonly<Record<Pooling | 'score', readonly string[]>> = {
  mean: TOKEN_OUTPUTS,
  cls: TOKEN_OUTPUTS,
  last: TOKEN_OUTPUTS,
  pooler: ['pooler_output'],
  none: ['sentence_embedding'],
  score: ['logits'],
};

interface GraphInput {
  readonly name: string;
  readonly tensor: (batch: TokenBatch) => Tensor;
}

export interface OnnxSessionOptions {
  /** What the output is used for; decides which output is read if none is named. */
  readonly use: Pooling | 'score';
  readonly outputName?: string;
  /** The files of the weights beside the graph, which onnxruntime maps. */
  readonly externalData: readonly string[];
  readonly cudaDevice: number | null;
  /** Whether to use the weights from mapped external data files, which all sessions share; if not, each session copies them repacked. */
  readonly shareWeights: boolean;
  /** Whether the graph also pools the tokens' vectors, in float32, so that they do not leave the GPU. For padded batches. */
  readonly poolsInGraph: boolean;
}

/** A graph's output, row-major, with the shape `dims`. */
export interface GraphOutput {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}

/** What runs the batches of a model. `run` blocks its thread, and ending the thread during a run aborts the process. */
export interface Session {
  /** Whether the output has one row per text, because the session added the pooling to the graph. */
  readonly isPooled: boolean;
  /** Runs a batch of at least one row and one token. The engine divides it among `threads` threads (default 1). Throws ENCODER_FAILED. */
  run(batch: TokenBatch, threads?: number): Promise<GraphOutput>;
  /** Must not be called during a run. */
  close(): Promise<void>;
}

/** Version of onnxruntime and the execution providers that are bundled with it. Throws ENCODER_MISSING. */
export function onnxruntimeFacts(): { readonly version: string; readonly providers: readonly string[] } {
  const { env, listSupportedBackends } = onnxruntime();
  const providers = listSupportedBackends()
    .filter((backend) => backend.bundled)
    .map((backend) => backend.name);
  return { version: env.versions.node ?? 'unknown', providers };
}

/** Opens a graph. Throws MODEL_INVALID if it is not an encoder's, DEVICE_UNAVAILABLE if CUDA cannot be used, ENCODER_MISSING. */
export async function openOnnxSession(path: string, options: OnnxSessionOptions): Promise<Session> {
  const { cudaDevice, shareWeights, use, outputName, poolsInGraph } = options;
  if (cudaDevice !== null) {
    // Checked first because onnxruntime would print a long report of missing libraries on stderr.
    const { installed, reason } = cudaFacts();
    if (!installed) throw cudaUnavailable(cudaDevice, reason);
  }
  const runtime = onnxruntime();
  const facts = poolsInGraph && poolsTokens(use) ? await readOnnxFacts(path) : undefined;
  const givesBytes = facts !== undefined && (await canBeGivenAsBytes(path, facts.externalData));
  const tokenOutput = givesBytes ? chooseOutput(facts.outputs, path, use, outputName) : undefined;
  const session: Record<string, string> = { ...integerProductSettings() };
  if (shareWeights) session.disable_prepacking = '1';
  // A graph that is given by its bytes has no folder.
  if (givesBytes) session.model_external_initializers_file_folder_path = dirname(path);
  const settings: InferenceSession.SessionOptions = {
    // Throws if the CUDA library cannot be loaded. onnxruntime still runs shape operators on the CPU.
    executionProviders: cudaDevice === null ? ['cpu'] : [{ name: 'cuda', deviceId: cudaDevice }],
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    // Errors only: warnings are about the export of the graph.
    logSeverityLevel: 3,
    extra: { session },
  };
  let opened: InferenceSession;
  try {
    opened =
      tokenOutput === undefined
        ? await runtime.InferenceSession.create(path, settings)
        : await runtime.InferenceSession.create(await withPooledOutput(path, tokenOutput), settings);
  } catch (error) {
    const { message } = error as Error;
    if (cudaDevice !== null && isOutOfMemory(message)) throw cudaFull(cudaDevice, message.trim(), error);
    if (cudaDevice !== null && /cuda|cudnn|cublas|backend|provider|shared library/i.test(message)) {
      throw cudaUnavailable(cudaDevice, message.trim(), error);
    }
    throw invalidModel(`onnxruntime cannot load ${path}: ${message}`, { cause: error });
  }
  let files: WatchedFiles | undefined;
  try {
    files = new WatchedFiles(options.externalData);
    if (tokenOutput !== undefined) checkTokenOutput(opened.outputMetadata, tokenOutput, path);
    const inputs = opened.inputMetadata.map((input) => checkInput(input, path, use));
    const isPooled = opened.outputNames.includes(POOLED_OUTPUT);
    const output = isPooled ? POOLED_OUTPUT : chooseOutput(opened.outputNames, path, use, outputName);
    return {
      isPooled,
      async run(batch) {
        try {
          return await runGraph(opened, inputs, output, batch);
        } finally {
          files?.requireUnchanged();
        }
      },
      async close() {
        files?.close();
        await opened.release();
      },
    };
  } catch (error) {
    files?.close();
    await opened.release();
    throw error;
  }
}

async function runGraph(
  session: InferenceSession,
  inputs: readonly GraphInput[],
  outputName: string,
  batch: TokenBatch,
): Promise<GraphOutput> {
  const feeds = Object.fromEntries(inputs.map(({ name, tensor }) => [name, tensor(batch)]));
  let output: Tensor | undefined;
  try {
    output = (await session.run(feeds, [outputName]))[outputName];
  } catch (error) {
    throw runFailure(error, batch);
  }
  const data = output?.data;
  if (data instanceof Float32Array) return { data, dims: output!.dims };
  if (output?.type === 'float16') return { data: fromFloat16(output.data), dims: output.dims };
  throw new TrawlError(
    'ENCODER_FAILED',
    `The graph's output ${outputName} is ${output?.type ?? 'missing'}; expected float32 or float16. Export the model to ONNX ` +
      'again with such an output, or import its checkpoint.',
  );
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
    const { Tensor } = onnxruntime();
    return {
      name,
      tensor: (batch) => new Tensor('float32', poolingWeights(batch, use), [batch.rows, 1, batch.length]),
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
  throw invalidModel(
    `${path} has an input ${name} (${type}). Expected only ${Object.keys(INPUT_VALUES).join(', ')} as int64 or ` +
      'int32, and past_key_values of a decoder as float32 or float16 with fixed heads. The graph is not an encoder; it may be an ' +
      'encoder-decoder.',
  );
}

/** The output that is read: `outputName`, or the one that `use` needs. @throws TrawlError MODEL_INVALID if the graph lacks it. */
function chooseOutput(
  outputs: readonly string[],
  path: string,
  use: Pooling | 'score',
  outputName: string | undefined,
): string {
  const wanted = outputName === undefined ? OUTPUTS[use] : [outputName];
  const found = wanted.find((name) => outputs.includes(name));
  if (found !== undefined) return found;
  const lack = `${path} has no output ${wanted.join(' or ')}, which`;
  const has = `needs; it has ${outputs.join(', ')}.`;
  if (use === 'score') throw invalidModel(`${lack} a cross-encoder ${has}`);
  const hint = outputs.includes('sentence_embedding')
    ? 'Its sentence_embedding is already pooled: use pooling "none".'
    : 'Choose a pooling that one of these outputs supports, or name the output in trawl-model.json (graph.output).';
  throw invalidModel(`${lack} pooling "${use}" ${has} ${hint}`);
}

/**
 * Refuses an output that has not one vector of each token: the pooling that a session adds to the graph would take the vectors of other
 * texts without an error. An unknown shape passes. Throws MODEL_INVALID.
 */
function checkTokenOutput(outputs: readonly InferenceSession.ValueMetadata[], tokenOutput: string, path: string): void {
  const output = outputs.find(({ name }) => name === tokenOutput);
  const shape = output?.isTensor === true ? output.shape : [];
  if (shape.length === 0 || shape.length === 3) return;
  throw invalidModel(
    `${path} has the output ${tokenOutput} of the shape ${shape.join(' × ')}; expected a vector of each token: texts × tokens × ` +
      'dimension. If it is already pooled, use pooling "none", else name another output in trawl-model.json (graph.output).',
  );
}
