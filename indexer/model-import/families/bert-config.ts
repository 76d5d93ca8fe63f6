import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import { ConfigReader } from '../config-reader.ts';
import { ACTIVATIONS, type Activation } from '../parts/feed-forward.ts';

/** Architecture and dimensions of a BERT-family encoder, from its config.json. */
export interface BertConfig {
  /** One of `BERT_MODEL_TYPES`. */
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
export const BERT_MODEL_TYPES: readonly string[] = ['bert', ...ROBERTA_VARIANTS, 'dpr'];

/**
 * Reads the encoder's dimensions from the content of config.json.
 *
 * @param path for error messages.
 * @throws TrawlError MODEL_INVALID if it describes another architecture.
 */
export function parseBertConfig(config: JsonObject, path: string): BertConfig {
  const read = new ConfigReader(config, path);
  const modelType = String(config.model_type);
  read.require('position_embedding_type', 'absolute');
  if (config.is_decoder === true || config.add_cross_attention === true) {
    throw read.refused('the model is a decoder (is_decoder or add_cross_attention); only encoders are supported');
  }
  if (modelType === 'dpr' && (config.projection_dim ?? 0) !== 0) {
    throw read.refused(
      `projection_dim is ${JSON.stringify(config.projection_dim)}; only DPR without projection (0) is supported`,
    );
  }
  const activation = read.choice('hidden_act', ACTIVATIONS, 'gelu');
  const hiddenSize = read.count('hidden_size', 1);
  const heads = read.count('num_attention_heads', 1);
  if (hiddenSize % heads !== 0) {
    throw read.refused(`hidden_size ${hiddenSize} is not a multiple of num_attention_heads ${heads}`);
  }
  return {
    modelType,
    vocabularySize: read.count('vocab_size', 1),
    hiddenSize,
    layers: read.count('num_hidden_layers', 1),
    heads,
    intermediateSize: read.count('intermediate_size', 1),
    activation,
    layerNormEpsilon: read.epsilon('layer_norm_eps', 1e-12),
    positionRows: read.count('max_position_embeddings', 1),
    positionPadding: ROBERTA_VARIANTS.includes(modelType) ? read.count('pad_token_id', 0, 1) : null,
    tokenTypeRows: read.count('type_vocab_size', 0, 2),
  };
}
