import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type JsonObject, readJsonFile } from '../src/embedding/model/json-file.ts';
import { knownFamily } from '../src/embedding/model/model-families.ts';
import { positionsOf, readMaxTokens, readTransformersFacts } from '../src/embedding/model/transformers-folder.ts';
import type { ScoreActivation } from '../src/embedding/model/trawl-model-file.ts';
import { TrawlError } from '../src/errors.ts';
import type { Precision } from '../src/manifest/model-identity.ts';
import { readArchitecture } from './architectures.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import type { EncoderArchitecture } from './encoder-family.ts';
import { causalModelMessage } from './model-kind.ts';
import type { ModelPlan, PlannedGraph } from './model-plan.ts';
import { bytesOfTensor, type OnnxGraph } from './onnx-graph.ts';
import { writeOnnx } from './onnx-writer.ts';
import { readSourceTokenizer } from './source-tokenizer.ts';

export const GRAPH_FILES: Readonly<Record<Precision, string>> = {
  float32: 'model.onnx',
  int8: 'model-int8.onnx',
  float16: 'model-float16.onnx',
};

/** Token limit of a pair of texts, even if the cross-encoder has more positions. Other rerankers use the same limit. */
const MAX_PAIR_TOKENS = 512;

/**
 * Plans the import of a safetensors checkpoint. Close the plan after use.
 *
 * @param names other names of the model, which help to recognise its family.
 * @throws TrawlError MODEL_INVALID.
 */
export async function planCheckpoint(
  folder: string,
  names: readonly string[],
  precisions: readonly Precision[],
): Promise<ModelPlan> {
  const configPath = join(folder, 'config.json');
  const raw = await readJsonFile(configPath);
  const architecture = readArchitecture(raw, configPath);
  const { crossEncoder } = architecture;
  if (isClassifier(raw) && crossEncoder === null) throw notACrossEncoder(configPath, architecture);
  if (architecture.isDecoder && !statesPooling(folder, names, raw)) {
    throw new TrawlError('MODEL_INVALID', causalModelMessage(configPath, raw));
  }
  const weights = await CheckpointWeights.open(folder);
  try {
    const scorer = isClassifier(raw) && crossEncoder !== null ? crossEncoder(weights) : null;
    const makeGraph = scorer?.graph ?? architecture.encoder(weights);
    return {
      kind: scorer === null ? 'encoder' : 'cross-encoder',
      ...(scorer === null
        ? await encoderFacts(folder, names, architecture)
        : await crossEncoderFacts(folder, raw, architecture, scorer.labels, configPath)),
      graphs: precisions.map((precision) => ({
        precision,
        output: scorer === null ? null : 'logits',
        write: writerOf(GRAPH_FILES[precision], () => makeGraph(precision)),
      })),
      writeTokenizer: await readSourceTokenizer(folder, architecture.vocabularySize, architecture.endToken),
      weightFiles: weights.files,
      close: () => weights.close(),
    };
  } catch (error) {
    await weights.close();
    throw error;
  }
}

/** Whether the folder's files or its names say that the model gives vectors of texts. */
function statesPooling(folder: string, names: readonly string[], raw: JsonObject): boolean {
  const files = ['modules.json', join('1_Pooling', 'config.json')];
  if (files.some((file) => existsSync(join(folder, file)))) return true;
  return knownFamily([...names, basename(folder), String(raw._name_or_path ?? '')]) !== null;
}

type Facts = Pick<ModelPlan, 'facts' | 'maxPositions' | 'labels' | 'activation'>;

async function encoderFacts(
  folder: string,
  names: readonly string[],
  { modelType }: EncoderArchitecture,
): Promise<Facts> {
  const { identity, maxPositions } = await readTransformersFacts(folder, names);
  // DPR compares the vectors of the CLS tokens unnormalised. DPR's `pooler_output` is that vector, not a pooler's.
  const facts =
    modelType === 'dpr'
      ? ({ ...identity, pooling: 'cls', normalize: false, similarity: 'inner-product' } as const)
      : identity;
  return { facts, maxPositions, labels: null, activation: null };
}

function notACrossEncoder(path: string, { modelType }: EncoderArchitecture): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: the model is a classifier or cross-encoder (…ForSequenceClassification) of the architecture ${modelType}, of which ` +
      'only encoders are supported. Cross-encoders are supported for BERT, RoBERTa and XLM-R.',
  );
}

/** Facts of a cross-encoder. Its `dimension` is the number of labels. `path` is for error messages. */
export async function crossEncoderFacts(
  folder: string,
  raw: JsonObject,
  config: { readonly modelType: string },
  labels: number,
  path: string,
): Promise<Facts> {
  if (labels !== 1) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${path}: the model has ${labels} labels. A cross-encoder has one, the score; a classifier with ${labels} classes ` +
        'cannot rank passages.',
      { details: { labels } },
    );
  }
  const maxPositions = positionsOf(raw);
  const limit = Math.min(MAX_PAIR_TOKENS, await readMaxTokens(folder, maxPositions));
  return {
    facts: {
      name: basename(folder),
      architecture: config.modelType,
      dimension: labels,
      pooling: 'none',
      normalize: false,
      similarity: 'inner-product',
      prefixes: { query: '', passage: '' },
      maxTokens: { query: limit, passage: limit },
      precision: 'float32',
      // In every precision, int8 included: the pool runs texts alone whose bits depend on their batch.
      batchInvariant: true,
    },
    maxPositions,
    labels,
    activation: scoreActivation(raw, path),
  };
}

export function isClassifier(config: JsonObject): boolean {
  const { architectures } = config;
  return Array.isArray(architectures) && architectures.some((name) => /ForSequenceClassification$/.test(String(name)));
}

/** As sentence-transformers does for one label: the activation in the config, or sigmoid if the config has none. */
function scoreActivation(config: JsonObject, path: string): ScoreActivation {
  const own = config.sentence_transformers as { readonly activation_fn?: unknown } | null | undefined;
  const named = own?.activation_fn ?? config.sbert_ce_default_activation_function;
  if (named === undefined || named === null) return 'sigmoid';
  const known: Readonly<Record<string, ScoreActivation>> = { Sigmoid: 'sigmoid', Identity: 'identity' };
  const activation = known[String(named).split('.').at(-1)!];
  if (activation !== undefined) return activation;
  throw new TrawlError(
    'MODEL_INVALID',
    `${path}: the score activation is ${JSON.stringify(named)}; it must be Sigmoid or Identity.`,
  );
}

function writerOf(name: string, make: () => OnnxGraph): PlannedGraph['write'] {
  return async (folder, { signal, onProgress }) => {
    const graph = make();
    const total = graph.tensors.reduce((sum, tensor) => sum + bytesOfTensor(tensor), 0);
    let done = 0;
    const onBytes = (bytes: number) => {
      done += bytes;
      onProgress?.(done, total);
    };
    const [path, ...externalData] = await writeOnnx(join(folder, name), graph, { signal, onBytes });
    return { path: basename(path!), externalData: externalData.map((file) => basename(file)) };
  };
}
