import { basename, join } from 'node:path';
import type { Int8Runner } from '../src/embedding/inference/int8-runner.ts';
import { type JsonObject, readJsonFile } from '../src/embedding/model/json-file.ts';
import {
  otherPooling,
  positionsOf,
  readMaxTokens,
  readTransformersFacts,
  type StatedPooling,
} from '../src/embedding/model/transformers-folder.ts';
import type { ScoreActivation } from '../src/embedding/model/trawl-model-file.ts';
import { TrawlError } from '../src/errors.ts';
import type { Precision } from '../src/manifest/model-identity.ts';
import { readArchitecture } from './architectures.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import { type DenseModules, NO_MODULES, readDenseModules } from './dense-modules.ts';
import type { EncoderArchitecture } from './encoder-family.ts';
import { enginePrecisions, engineWriterOf } from './engine-graphs.ts';
import { isTrunkOfLateInteraction, TRUNK_REMARK } from './late-interaction.ts';
import {
  assumedPoolingRemark,
  classesOf,
  generatingModelMessage,
  isEncoderAlone,
  refuseOtherKind,
  statesPooling,
} from './model-kind.ts';
import type { ModelPlan, PlannedGraph } from './model-plan.ts';
import { bytesOfTensor, type OnnxGraph } from './onnx-graph.ts';
import { writeOnnx } from './onnx-writer.ts';
import { readSourceTokenizer } from './source-tokenizer.ts';
import { refuseSparseEncoder } from './sparse-encoder.ts';
import { answerIds, yesNoReranker } from './yes-no-reranker.ts';

export const GRAPH_FILES: Readonly<Record<Precision, string>> = {
  float32: 'model.onnx',
  int8: 'model-int8.onnx',
  float16: 'model-float16.onnx',
  bfloat16: 'model-bfloat16.bin',
};

/** Token limit of a pair of texts, even if the cross-encoder has more positions. Other rerankers use the same limit. */
const MAX_PAIR_TOKENS = 512;
/** The same for a reranker that reads a chat, whose prompt takes about 90 tokens, and whose passages may be longer. */
const MAX_CHAT_TOKENS = 1_024;

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
  { int8, pooling }: { readonly int8: Int8Runner | undefined; readonly pooling: StatedPooling | undefined },
): Promise<ModelPlan> {
  const { raw, configPath, architecture, reranker } = await checkConfigs(folder, names, precisions, pooling);
  const weights = await CheckpointWeights.open(folder);
  let dense: DenseModules | undefined;
  const close = async (): Promise<void> => {
    await dense?.close();
    await weights.close();
  };
  try {
    // A conversion to …ForSequenceClassification has a head; else the score is that of the answer yes.
    const answers = reranker !== null && !isClassifier(raw) ? await answerIds(folder) : null;
    const scores = reranker !== null || isClassifier(raw);
    const scorer = scores ? architecture.crossEncoder!(weights, answers) : null;
    if (scorer !== null) {
      const facts = await crossEncoderFacts(folder, raw, architecture, scorer.labels, configPath);
      if (precisions.includes('bfloat16')) throw notInBfloat16(configPath, 'a cross-encoder');
      const about =
        reranker === null
          ? { ...facts, pairTemplate: null }
          : { ...(await inTemplate(folder, facts)), pairTemplate: reranker.pairTemplate };
      return await planOf({ kind: 'cross-encoder', ...about }, scorer.graph, 'logits', []);
    }
    const trunkAlone = await isTrunkOfLateInteraction(folder, raw, pooling);
    const { facts, ...others } = await encoderFacts(folder, names, architecture, { trunkAlone, pooling });
    dense = trunkAlone ? NO_MODULES : await readDenseModules(folder, facts.pooling, facts.dimension);
    const { modules, dimension, files } = dense;
    if (precisions.includes('bfloat16')) {
      if (modules.length > 0) throw notInBfloat16(configPath, 'an encoder with Dense modules');
      if (facts.pooling === 'pooler') throw notInBfloat16(configPath, 'an encoder with the pooling "pooler"');
    }
    const { inEngine, remarks } = enginePrecisions(precisions, {
      engine: architecture.engine,
      hasModules: modules.length > 0,
      pooling: facts.pooling,
      int8,
    });
    // Refuses shapes before anything is written.
    for (const precision of inEngine) architecture.engine!.weights(weights, precision);
    const encoder = architecture.encoder(weights);
    return await planOf(
      { kind: 'encoder', pairTemplate: null, ...others, facts: dimension === null ? facts : { ...facts, dimension } },
      (precision) => encoder(precision, modules),
      null,
      files,
      { inEngine, remarks: [...remarks, ...encoderRemarks({ ...others, facts }, raw, trunkAlone)] },
    );
  } catch (error) {
    await close();
    throw error;
  }

  async function planOf(
    about: Facts & Pick<ModelPlan, 'kind' | 'pairTemplate'>,
    makeGraph: (precision: Precision) => OnnxGraph,
    output: string | null,
    moduleFiles: readonly string[],
    { inEngine, remarks }: ReturnType<typeof enginePrecisions> = { inEngine: [], remarks: [] },
  ): Promise<ModelPlan> {
    return {
      ...about,
      remarks,
      graphs: precisions.map((precision) => {
        const own = inEngine.find((one) => one === precision);
        const write =
          own === undefined
            ? writerOf(GRAPH_FILES[precision], () => makeGraph(precision))
            : engineWriterOf(own, () => architecture.engine!.weights(weights, own));
        return { precision, output, write };
      }),
      // The text of a pair has its own end.
      writeTokenizer: await readSourceTokenizer(
        folder,
        architecture.vocabularySize,
        about.pairTemplate === null ? architecture.endToken : null,
      ),
      weightFiles: [...weights.files, ...moduleFiles],
      close,
    };
  }
}

/**
 * What the config files alone say of a checkpoint of a supported architecture.
 *
 * @throws TrawlError MODEL_INVALID for a model that gives no vectors of texts, and CONFIG_INVALID for a precision that its
 * architecture does not have, and for a pooling other than the one that the folder states.
 */
export async function checkConfigs(
  folder: string,
  names: readonly string[],
  precisions: readonly Precision[],
  pooling: StatedPooling | undefined,
): Promise<SourceConfig & { readonly reranker: ReturnType<typeof yesNoReranker> }> {
  const configPath = join(folder, 'config.json');
  const raw = await readJsonFile(configPath);
  await refuseSparseEncoder(folder, names, raw, pooling);
  const architecture = readArchitecture(raw, configPath);
  const reranker = yesNoReranker(folder, names, raw);
  if (reranker === null) await checkKind(folder, names, { raw, configPath, architecture }, pooling);
  checkPrecisions(configPath, architecture, precisions);
  if (reranker !== null || isClassifier(raw)) refusePoolingOfPairs(configPath, pooling);
  else {
    // Throws for a late-interaction model.
    const trunkAlone = await isTrunkOfLateInteraction(folder, raw, pooling);
    if (pooling !== undefined) await encoderFacts(folder, names, architecture, { trunkAlone, pooling });
  }
  return { raw, configPath, architecture, reranker };
}

interface SourceConfig {
  readonly raw: JsonObject;
  readonly configPath: string;
  readonly architecture: EncoderArchitecture;
}

/** Throws MODEL_INVALID for a model that is not one of the kinds that its architecture is imported as. */
async function checkKind(
  folder: string,
  names: readonly string[],
  { raw, configPath, architecture }: SourceConfig,
  pooling: StatedPooling | undefined,
): Promise<void> {
  if (isClassifier(raw)) {
    if (architecture.modelType === 'qwen3') throw unknownPrompt(configPath);
    if (architecture.crossEncoder === null) throw notACrossEncoder(configPath, architecture);
    return;
  }
  await refuseOtherKind(folder, names, raw, pooling);
  const isEncoder = pooling !== undefined || isEncoderAlone(raw) || statesPooling(folder, names, raw);
  if (architecture.generatesText && !isEncoder) {
    throw new TrawlError('MODEL_INVALID', generatingModelMessage(configPath, raw));
  }
}

/** Throws CONFIG_INVALID if a pooling is stated for a cross-encoder. */
export function refusePoolingOfPairs(path: string, pooling: StatedPooling | undefined): void {
  if (pooling === undefined) return;
  throw new TrawlError(
    'CONFIG_INVALID',
    `--pooling is ${pooling}, but ${path} describes a cross-encoder, which scores pairs of texts and has no pooling. Leave out --pooling.`,
  );
}

function checkPrecisions(
  path: string,
  { modelType, overflowsFloat16, engine }: EncoderArchitecture,
  precisions: readonly Precision[],
): void {
  if (engine === undefined && precisions.includes('bfloat16')) {
    throw notInBfloat16(path, `of the architecture ${modelType}`);
  }
  if (!overflowsFloat16 || !precisions.includes('float16')) return;
  throw new TrawlError(
    'CONFIG_INVALID',
    `${path}: activations of ${modelType} exceed float16 (65504), so no float16 graph is made. Ask for float32 or int8.`,
  );
}

function notInBfloat16(path: string, what: string): TrawlError {
  return new TrawlError(
    'CONFIG_INVALID',
    `${path}: the model is ${what}. bfloat16 is supported for encoders of BERT's architectures (E5, BGE, MiniLM), with the pooling mean, ` +
      'cls or last and without Dense modules. Ask for float32 or int8.',
  );
}

type Facts = Pick<ModelPlan, 'facts' | 'maxPositions' | 'poolingFrom' | 'labels' | 'activation'>;

async function encoderFacts(
  folder: string,
  names: readonly string[],
  { modelType }: EncoderArchitecture,
  { trunkAlone, pooling }: { readonly trunkAlone: boolean; readonly pooling: StatedPooling | undefined },
): Promise<Facts> {
  const modules = trunkAlone ? 'ignored' : 'with Dense';
  const { identity, maxPositions, poolingFrom } = await readTransformersFacts(folder, names, { modules, pooling });
  const common = { maxPositions, labels: null, activation: null };
  if (modelType !== 'dpr') return { facts: identity, poolingFrom, ...common };
  if (pooling !== undefined && pooling !== 'cls') throw otherPooling(pooling, `the pooling of DPR (${folder}) is cls`);
  // DPR compares the vectors of the CLS tokens unnormalised. DPR's `pooler_output` is that vector, not a pooler's.
  const facts = { ...identity, pooling: 'cls', normalize: false, similarity: 'inner-product' } as const;
  return { facts, poolingFrom: 'checkpoint', ...common };
}

/** What the user should know of the pooling of an encoder. */
export function encoderRemarks(
  { facts, poolingFrom }: Pick<Facts, 'facts' | 'poolingFrom'>,
  raw: JsonObject,
  trunkAlone: boolean,
): readonly string[] {
  if (trunkAlone) return [TRUNK_REMARK];
  return poolingFrom === 'assumed' ? [assumedPoolingRemark(facts.pooling, raw)] : [];
}

function unknownPrompt(path: string): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: the model is a classifier or cross-encoder (…ForSequenceClassification) of the architecture qwen3, whose prompt is not ` +
      'known. Conversions of Qwen3-Reranker are recognised by their name: for one with its prompt, put qwen3-reranker into the name of ' +
      'its folder. Cross-encoders of BERT, RoBERTa, XLM-R and ModernBERT would fit, too, for example BAAI/bge-reranker-base.',
  );
}

function notACrossEncoder(path: string, { modelType }: EncoderArchitecture): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: the model is a classifier or cross-encoder (…ForSequenceClassification) of the architecture ${modelType}, of which ` +
      'only encoders are supported. Cross-encoders of BERT, RoBERTa, XLM-R and ModernBERT would fit, for example BAAI/bge-reranker-base.',
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
        'cannot rank passages. A reranker would fit, for example BAAI/bge-reranker-base, or an encoder, for example intfloat/e5-base-v2.',
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
    poolingFrom: null,
    labels,
    activation: scoreActivation(raw, path),
  };
}

/** Facts of a reranker that reads a chat: its score is that of the last token. */
async function inTemplate(folder: string, { facts, ...others }: Facts): Promise<Facts> {
  const limit = Math.min(MAX_CHAT_TOKENS, await readMaxTokens(folder, others.maxPositions));
  return { ...others, facts: { ...facts, pooling: 'last', maxTokens: { query: limit, passage: limit } } };
}

export function isClassifier(config: JsonObject): boolean {
  return classesOf(config).some((name) => /ForSequenceClassification$/.test(name));
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
