import type { JsonObject } from '../src/embedding/model/json-file.ts';
import { TrawlError } from '../src/errors.ts';

/** Activation of the feed-forward layers: exact GELU (erf), its tanh approximation, or ReLU. */
export type Activation = 'gelu' | 'gelu-tanh' | 'relu';

/** Architecture and dimensions of a BERT-family encoder, from its config.json. */
export interface EncoderConfig {
  /** One of `SUPPORTED_ARCHITECTURES`. */
  readonly modelType: string;
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly intermediateSize: number;
  readonly activation: Activation;
  readonly layerNormEpsilon: number;
  /** Rows of the position table. */
  readonly positionRows: number;
  /**
   * Id of the padding token for RoBERTa and its variants, else null. They count positions over the tokens that are not
   * padding, from this id + 1.
   */
  readonly positionPadding: number | null;
  /** Rows of the token type table. With 0 or 1 row, the graph needs no `token_type_ids`. */
  readonly tokenTypeRows: number;
}

const ROBERTA_VARIANTS = ['roberta', 'xlm-roberta', 'camembert'];
/** `dpr` is BERT with another head. */
export const SUPPORTED_ARCHITECTURES: readonly string[] = ['bert', ...ROBERTA_VARIANTS, 'dpr'];

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu-tanh',
  gelu_fast: 'gelu-tanh',
  gelu_pytorch_tanh: 'gelu-tanh',
  relu: 'relu',
};

/**
 * Reads the encoder's dimensions from the content of config.json.
 *
 * @param path for error messages.
 * @throws TrawlError MODEL_INVALID if it describes another architecture.
 */
export function parseEncoderConfig(config: JsonObject, path: string): EncoderConfig {
  const modelType = config.model_type;
  if (typeof modelType !== 'string' || !SUPPORTED_ARCHITECTURES.includes(modelType)) throw unsupported(path, modelType);
  const positions = config.position_embedding_type ?? 'absolute';
  if (positions !== 'absolute') {
    throw invalid(path, `position_embedding_type is ${JSON.stringify(positions)}; only "absolute" is supported`);
  }
  if (config.is_decoder === true || config.add_cross_attention === true) {
    throw invalid(path, 'the model is a decoder (is_decoder or add_cross_attention); only encoders are supported');
  }
  if (modelType === 'dpr' && (config.projection_dim ?? 0) !== 0) {
    throw invalid(
      path,
      `projection_dim is ${JSON.stringify(config.projection_dim)}; only DPR without projection (0) is supported`,
    );
  }
  const activation = ACTIVATIONS[String(config.hidden_act ?? 'gelu')];
  if (activation === undefined) {
    const known = Object.keys(ACTIVATIONS).join(', ');
    throw invalid(path, `hidden_act is ${JSON.stringify(config.hidden_act)}; expected one of ${known}`);
  }
  const count = (name: string, least: number, otherwise?: number): number => {
    const value = config[name] ?? otherwise;
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) < 2 ** 31)
      return value as number;
    throw invalid(path, `${name} is ${JSON.stringify(config[name])}; it must be a whole number from ${least}`);
  };
  const hiddenSize = count('hidden_size', 1);
  const heads = count('num_attention_heads', 1);
  if (hiddenSize % heads !== 0) {
    throw invalid(path, `hidden_size ${hiddenSize} is not a multiple of num_attention_heads ${heads}`);
  }
  const epsilon = config.layer_norm_eps ?? 1e-12;
  if (typeof epsilon !== 'number' || !(epsilon >= 0 && epsilon < 1)) {
    throw invalid(path, `layer_norm_eps is ${JSON.stringify(epsilon)}; it must be a small number such as 1e-12`);
  }
  return {
    modelType,
    vocabularySize: count('vocab_size', 1),
    hiddenSize,
    layers: count('num_hidden_layers', 1),
    heads,
    intermediateSize: count('intermediate_size', 1),
    activation,
    layerNormEpsilon: epsilon,
    positionRows: count('max_position_embeddings', 1),
    positionPadding: ROBERTA_VARIANTS.includes(modelType) ? count('pad_token_id', 0, 1) : null,
    tokenTypeRows: count('type_vocab_size', 0, 2),
  };
}

function unsupported(path: string, modelType: unknown): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: the architecture ${JSON.stringify(modelType)} is not supported. Import makes graphs for BERT-family encoders ` +
      `(model_type ${SUPPORTED_ARCHITECTURES.join(', ')}), such as E5, BGE and MiniLM, not for T5, decoders or other ` +
      'encoders. If the model has an ONNX export, put model.onnx into the folder; it is used unchanged.',
    { details: { modelType: typeof modelType === 'string' ? modelType : null } },
  );
}

function invalid(path: string, what: string): TrawlError {
  return new TrawlError('MODEL_INVALID', `${path}: ${what}.`);
}
