import type { TrawlError } from '../../src/base/errors.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { invalidConfig, invalidModel } from '../../src/encoder/model/json-file.ts';
import { readArchitecture } from './architectures.ts';
import { type EncoderFacts, encoderFacts } from './checkpoint-facts.ts';
import type { EncoderArchitecture } from './encoder-family.ts';
import type { ImportSource } from './import-source.ts';
import { generatingModelMessage, isClassifier, isEncoderAlone, refuseOtherKind, statesPooling } from './model-kind.ts';
import { refuseSparseEncoder } from './sparse-encoder.ts';
import { yesNoTemplate } from './yes-no-reranker.ts';

export interface CheckedCheckpoint {
  readonly architecture: EncoderArchitecture;
  /** Undefined for a cross-encoder. */
  readonly encoder?: EncoderFacts;
  /** The text of a pair, for a reranker that reads a chat. */
  readonly pairTemplate?: string;
}

/**
 * Checks what the config files alone say of a checkpoint. Throws MODEL_INVALID for a model of an unsupported architecture, or that gives no
 * vectors of texts; CONFIG_INVALID for a precision that its architecture does not have, and for a pooling other than the one that the
 * folder states.
 */
export async function checkCheckpoint(
  source: ImportSource,
  precisions: readonly Precision[],
): Promise<CheckedCheckpoint> {
  const { config, configPath } = source;
  refuseSparseEncoder(source);
  const architecture = readArchitecture(config, configPath);
  const pairTemplate = yesNoTemplate(source);
  if (pairTemplate === undefined) checkKind(source, architecture);
  checkPrecisions(configPath, architecture, precisions);
  if (pairTemplate === undefined && !isClassifier(config)) {
    return { architecture, encoder: await encoderFacts(source) };
  }
  refusePoolingOfPairs(source);
  return { architecture, pairTemplate };
}

/** Throws MODEL_INVALID for a model that is not one of the kinds that its architecture is imported as. */
function checkKind(source: ImportSource, { modelType, crossEncoder, generatesText }: EncoderArchitecture): void {
  const { config, configPath, pooling } = source;
  if (isClassifier(config)) {
    const what = `${configPath}: the model is a classifier or cross-encoder (…ForSequenceClassification) of the architecture ${modelType}`;
    if (modelType === 'qwen3') {
      throw invalidModel(
        `${what}, whose prompt is not known. Conversions of Qwen3-Reranker are recognised by their name: for one with its prompt, put ` +
          'qwen3-reranker into the name of its folder. Cross-encoders of BERT, RoBERTa, XLM-R and ModernBERT would fit, too, for example ' +
          'BAAI/bge-reranker-base.',
      );
    }
    if (crossEncoder !== undefined) return;
    throw invalidModel(
      `${what}, of which only encoders are supported. Cross-encoders of BERT, RoBERTa, XLM-R and ModernBERT would fit, for example ` +
        'BAAI/bge-reranker-base.',
    );
  }
  refuseOtherKind(source);
  if (generatesText && pooling === undefined && !isEncoderAlone(config) && !statesPooling(source)) {
    throw invalidModel(generatingModelMessage(configPath, config));
  }
}

export function refusePoolingOfPairs({ configPath, pooling }: ImportSource): void {
  if (pooling === undefined) return;
  throw invalidConfig(
    `--pooling is ${pooling}, but ${configPath} describes a cross-encoder, which scores pairs of texts and has no pooling. Leave out --pooling.`,
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
  throw invalidConfig(
    `${path}: activations of ${modelType} exceed float16 (65504), so no float16 graph is made. Ask for float32 or int8.`,
  );
}

export function notInBfloat16(path: string, what: string): TrawlError {
  return invalidConfig(
    `${path}: the model is ${what}. bfloat16 is supported for encoders of BERT's architectures (E5, BGE, MiniLM), with the pooling mean, ` +
      'cls or last and without Dense modules. Ask for float32 or int8.',
  );
}
