import type { JsonObject } from '../src/embedding/json-file.ts';
import { TrawlError } from '../src/errors.ts';

/** How the feed-forward layers bend: exact GELU (erf), its tanh approximation, ReLU. */
export type Activation = 'gelu' | 'gelu-tanh' | 'relu';

/** The shape of an encoder of the BERT family, from its config.json. */
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
  /** Rows of the table of positions. */
  readonly positionRows: number;
  /**
   * RoBERTa and its kin count positions from the row behind the padding's, over the tokens that are no padding; the
   * padding token's id then, else null.
   */
  readonly positionPadding: number | null;
  /** Rows of the table of token types; with one alone there is nothing to choose. */
  readonly tokenTypes: number;
}

const ROBERTA_KIN = ['roberta', 'xlm-roberta', 'camembert'];
/** `dpr` is BERT with another head. */
export const SUPPORTED_ARCHITECTURES: readonly string[] = ['bert', ...ROBERTA_KIN, 'dpr'];

const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  gelu: 'gelu',
  gelu_python: 'gelu',
  gelu_new: 'gelu-tanh',
  gelu_fast: 'gelu-tanh',
  gelu_pytorch_tanh: 'gelu-tanh',
  relu: 'relu',
};

/** The encoder that a checkpoint's config.json describes. MODEL_INVALID where it is of another kind. `path` for messages. */
export function parseEncoderConfig(config: JsonObject, path: string): EncoderConfig {
  const modelType = config.model_type;
  if (typeof modelType !== 'string' || !SUPPORTED_ARCHITECTURES.includes(modelType)) throw unsupported(path, modelType);
  const positions = config.position_embedding_type ?? 'absolute';
  if (positions !== 'absolute') {
    throw invalid(path, `position_embedding_type is ${JSON.stringify(positions)}; supported is "absolute"`);
  }
  if (config.is_decoder === true || config.add_cross_attention === true) {
    throw invalid(path, 'the model is a decoder (is_decoder or add_cross_attention); supported are encoders');
  }
  if (modelType === 'dpr' && (config.projection_dim ?? 0) !== 0) {
    throw invalid(
      path,
      `projection_dim is ${JSON.stringify(config.projection_dim)}; supported is DPR without projection (0)`,
    );
  }
  const activation = ACTIVATIONS[String(config.hidden_act ?? 'gelu')];
  if (activation === undefined) {
    const known = Object.keys(ACTIVATIONS).join(', ');
    throw invalid(path, `hidden_act is ${JSON.stringify(config.hidden_act)}; supported are ${known}`);
  }
  const count = (name: string, least: number, otherwise?: number): number => {
    const value = config[name] ?? otherwise;
    if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) < 2 ** 31)
      return value as number;
    throw invalid(path, `${name} is ${JSON.stringify(config[name])}; it must be a whole number of at least ${least}`);
  };
  const hiddenSize = count('hidden_size', 1);
  const heads = count('num_attention_heads', 1);
  if (hiddenSize % heads !== 0) {
    throw invalid(path, `hidden_size ${hiddenSize} is no multiple of num_attention_heads ${heads}`);
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
    positionPadding: ROBERTA_KIN.includes(modelType) ? count('pad_token_id', 0, 1) : null,
    tokenTypes: count('type_vocab_size', 0, 2),
  };
}

function unsupported(path: string, modelType: unknown): TrawlError {
  return new TrawlError(
    'MODEL_INVALID',
    `${path}: the architecture ${JSON.stringify(modelType)} is out of scope: graphs are made for encoders of the BERT ` +
      `family (model_type ${SUPPORTED_ARCHITECTURES.join(', ')}), such as E5, BGE and MiniLM. T5, decoders and other encoders are ` +
      'not; of those that have an ONNX export, put model.onnx into the folder and it is taken as it is.',
    { details: { modelType: typeof modelType === 'string' ? modelType : null } },
  );
}

function invalid(path: string, what: string): TrawlError {
  return new TrawlError('MODEL_INVALID', `${path}: ${what}.`);
}
