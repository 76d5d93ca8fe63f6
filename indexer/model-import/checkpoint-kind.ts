import { join } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { type JsonObject, readJsonFile } from '../../src/encoder/model/json-file.ts';
import type { StatedPooling } from '../../src/encoder/model/transformers-folder.ts';
import { readArchitecture } from './architectures.ts';
import { encoderFacts } from './checkpoint-facts.ts';
import type { EncoderArchitecture } from './encoder-family.ts';
import { isTrunkOfLateInteraction } from './late-interaction.ts';
import { classesOf, generatingModelMessage, isEncoderAlone, refuseOtherKind, statesPooling } from './model-kind.ts';
import { refuseSparseEncoder } from './sparse-encoder.ts';
import { yesNoReranker } from './yes-no-reranker.ts';

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
): Promise<CheckedConfig> {
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

export interface CheckedConfig extends SourceConfig {
  /** Null for a model that is none. */
  readonly reranker: ReturnType<typeof yesNoReranker>;
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

export function notInBfloat16(path: string, what: string): TrawlError {
  return new TrawlError(
    'CONFIG_INVALID',
    `${path}: the model is ${what}. bfloat16 is supported for encoders of BERT's architectures (E5, BGE, MiniLM), with the pooling mean, ` +
      'cls or last and without Dense modules. Ask for float32 or int8.',
  );
}

export function isClassifier(config: JsonObject): boolean {
  return classesOf(config).some((name) => /ForSequenceClassification$/.test(name));
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
