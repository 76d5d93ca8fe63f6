import { env, InferenceSession, listSupportedBackends, Tensor } from 'onnxruntime-node';
import { TrawlError } from '../errors.ts';
import type { Pooling } from '../manifest/model-identity.ts';
import type { TokenVectors } from './pooling.ts';

/** Outputs by what a pooling needs, the likeliest first; the names that exporters give them. */
const TOKEN_OUTPUTS = ['last_hidden_state', 'token_embeddings'];
const OUTPUTS_BY_POOLING: Readonly<Record<Pooling, readonly string[]>> = {
  mean: TOKEN_OUTPUTS,
  cls: TOKEN_OUTPUTS,
  last: TOKEN_OUTPUTS,
  pooler: ['pooler_output'],
  none: ['sentence_embedding'],
};

/** Value at a position for each input that an encoder may have; texts run alone, so every token is attended. */
const INPUT_VALUES: Readonly<Record<string, (id: number, position: number) => number>> = {
  input_ids: (id) => id,
  attention_mask: () => 1,
  token_type_ids: () => 0,
  position_ids: (_, position) => position,
};

/** Version of onnxruntime, and the execution providers that are there (others need libraries of their own). */
export function onnxruntimeFacts(): { readonly version: string; readonly providers: readonly string[] } {
  const providers = listSupportedBackends()
    .filter((backend) => backend.bundled)
    .map((backend) => backend.name);
  return { version: env.versions.node ?? 'unknown', providers };
}

/**
 * A graph on one CPU thread: the only file that knows onnxruntime-node. `run` blocks the thread that calls it although
 * it is asynchronous, so sessions live in worker threads; ending the thread during a run aborts the process.
 */
export class OnnxSession {
  readonly #session: InferenceSession;
  readonly #inputs: readonly { readonly name: string; readonly type: 'int64' | 'int32' }[];
  readonly #outputName: string;
  readonly #outputIsPooled: boolean;

  private constructor(session: InferenceSession, path: string, pooling: Pooling, outputName: string | null) {
    this.#session = session;
    this.#inputs = session.inputMetadata.map((input) => checkInput(input, path));
    this.#outputName = chooseOutput(session, path, pooling, outputName);
    this.#outputIsPooled = pooling === 'pooler' || pooling === 'none';
  }

  /** `outputName` null: chosen by the pooling. Throws MODEL_INVALID where the graph does not fit. */
  static async open(path: string, pooling: Pooling, outputName: string | null): Promise<OnnxSession> {
    let session: InferenceSession;
    try {
      session = await InferenceSession.create(path, {
        executionProviders: ['cpu'],
        executionMode: 'sequential',
        graphOptimizationLevel: 'all',
        intraOpNumThreads: 1,
        interOpNumThreads: 1,
        // Errors only; its warnings are about graphs that others made.
        logSeverityLevel: 3,
      });
    } catch (error) {
      throw new TrawlError('MODEL_INVALID', `${path} cannot be loaded by onnxruntime: ${(error as Error).message}`, {
        cause: error,
      });
    }
    return new OnnxSession(session, path, pooling, outputName);
  }

  /** The output for one text of n ≥ 1 tokens, framing included. Throws ENCODING_FAILED. */
  async run(ids: readonly number[]): Promise<TokenVectors> {
    const feeds: Record<string, Tensor> = {};
    for (const { name, type } of this.#inputs) {
      feeds[name] = inputTensor(type, ids, INPUT_VALUES[name]!);
    }
    let output: Tensor | undefined;
    try {
      output = (await this.#session.run(feeds, [this.#outputName]))[this.#outputName];
    } catch (error) {
      throw new TrawlError('ENCODING_FAILED', `The model failed on a text of ${ids.length} tokens: ${String(error)}`, {
        details: { tokens: ids.length },
        cause: error,
      });
    }
    return this.#checkedOutput(output, ids.length);
  }

  /** Not during a run. */
  async close(): Promise<void> {
    await this.#session.release();
  }

  #checkedOutput(output: Tensor | undefined, tokens: number): TokenVectors {
    const data = output?.data;
    if (output === undefined || !(data instanceof Float32Array)) {
      throw new TrawlError('ENCODING_FAILED', `The graph's output ${this.#outputName} is not float32.`);
    }
    const dimension = output.dims.at(-1) ?? 0;
    const rows = this.#outputIsPooled ? 1 : tokens;
    if (dimension === 0 || data.length !== rows * dimension) {
      throw new TrawlError(
        'ENCODING_FAILED',
        `The graph's output ${this.#outputName} has the shape ${output.dims.join(' × ')} where 1 × ${rows} × ` +
          'dimension was expected.',
      );
    }
    return { data, tokens: rows, dimension };
  }
}

function inputTensor(
  type: 'int64' | 'int32',
  ids: readonly number[],
  valueAt: (id: number, position: number) => number,
): Tensor {
  const data = type === 'int64' ? new BigInt64Array(ids.length) : new Int32Array(ids.length);
  for (let position = 0; position < ids.length; position++) {
    const value = valueAt(ids[position]!, position);
    data[position] = type === 'int64' ? BigInt(value) : value;
  }
  return new Tensor(type, data, [1, ids.length]);
}

function checkInput(input: InferenceSession.ValueMetadata, path: string): { name: string; type: 'int64' | 'int32' } {
  const type = input.isTensor ? input.type : 'no tensor';
  if (!Object.hasOwn(INPUT_VALUES, input.name) || (type !== 'int64' && type !== 'int32')) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path} wants an input ${input.name} (${type}); an encoder has ${Object.keys(INPUT_VALUES).join(', ')} as int64 ` +
        'or int32. This graph is of another kind, such as a decoder or an encoder-decoder.',
    );
  }
  return { name: input.name, type };
}

function chooseOutput(session: InferenceSession, path: string, pooling: Pooling, outputName: string | null): string {
  const wanted = outputName === null ? OUTPUTS_BY_POOLING[pooling] : [outputName];
  const found = wanted.find((name) => session.outputNames.includes(name));
  if (found !== undefined) return found;
  const hint = session.outputNames.includes('sentence_embedding')
    ? ' Its sentence_embedding is pooled already: choose pooling "none".'
    : ' Choose a pooling that fits, or name the output in trawl-model.json (graph.output).';
  throw new TrawlError(
    'MODEL_INVALID',
    `${path} has no output ${wanted.join(' or ')}, which pooling "${pooling}" needs; it has ${session.outputNames.join(', ')}.${hint}`,
  );
}
