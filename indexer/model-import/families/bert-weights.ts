import type { JsonObject } from '../../../src/encoder/model/json-file.ts';
import type { CheckpointWeights } from '../checkpoint-weights.ts';
import { ConfigReader } from '../config-reader.ts';
import { ACTIVATIONS } from '../parts/feed-forward.ts';
import { checkLayers, type Dense, prefixOf, WeightFinder } from '../weight-finder.ts';

export const ROBERTA_VARIANTS: readonly string[] = ['roberta', 'xlm-roberta', 'camembert'];

export type BertConfig = ReturnType<typeof parseBertConfig>;

/**
 * Reads the encoder's dimensions from the content of config.json.
 *
 * @param path for error messages.
 * @throws TrawlError MODEL_INVALID if it describes another architecture.
 */
export function parseBertConfig(config: JsonObject, path: string) {
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
    /** Id of the padding token of RoBERTa and its variants, which number the tokens that are not padding from this id + 1. */
    positionPadding: ROBERTA_VARIANTS.includes(modelType) ? read.count('pad_token_id', 0, 1) : undefined,
    /** Rows of the token type table. With 0 or 1 row, the graph needs no `token_type_ids`. */
    tokenTypeRows: read.count('type_vocab_size', 0, 2),
  };
}

/** The weights of an encoder. Their shapes agree with the config. */
export type BertWeights = ReturnType<typeof findBertWeights>;

const WORDS = 'embeddings.word_embeddings.weight';
/** Prefixes of the encoder's tensor names in models with a head, the most common first. */
const PREFIXES = ['', 'bert.', 'roberta.', '0.auto_model.'];

/**
 * Finds an encoder's weights and checks their shapes and types. Ignores other tensors, such as a language-model head.
 * Throws MODEL_INVALID.
 */
export function findBertWeights(weights: CheckpointWeights, config: BertConfig) {
  const prefix = prefixOf(weights, WORDS, PREFIXES);
  checkLayers(weights, `${prefix}encoder.layer.`, config.layers, 'num_hidden_layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner, tokenTypeRows } = config;
  const layer = (name: string) => ({
    query: find.dense(`${name}.attention.self.query`, hidden, hidden),
    key: find.dense(`${name}.attention.self.key`, hidden, hidden),
    value: find.dense(`${name}.attention.self.value`, hidden, hidden),
    attentionOutput: find.dense(`${name}.attention.output.dense`, hidden, hidden),
    attentionNorm: find.layerNorm(`${name}.attention.output.LayerNorm`, hidden),
    intermediate: find.dense(`${name}.intermediate.dense`, inner, hidden),
    output: find.dense(`${name}.output.dense`, hidden, inner),
    outputNorm: find.layerNorm(`${name}.output.LayerNorm`, hidden),
  });
  return {
    words: find.weight(WORDS, [config.vocabularySize, hidden]),
    positions: find.weight('embeddings.position_embeddings.weight', [config.positionRows, hidden]),
    tokenTypes:
      tokenTypeRows === 0 ? undefined : find.weight('embeddings.token_type_embeddings.weight', [tokenTypeRows, hidden]),
    embeddingNorm: find.layerNorm('embeddings.LayerNorm', hidden),
    layers: Array.from({ length: config.layers }, (_, i) => layer(`encoder.layer.${i}`)),
    pooler: find.has('pooler.dense.weight') ? find.dense('pooler.dense', hidden, hidden) : undefined,
  };
}

/** A classification head: logits = projection(tanh(dense(first token))). */
export interface ClassifierWeights {
  /** BERT's pooler, or the dense layer of RoBERTa's classifier. */
  readonly dense: Dense;
  /** labels × hidden. */
  readonly projection: Dense;
}

/** The head of a …ForSequenceClassification checkpoint. Throws MODEL_INVALID. */
export function findClassifier(weights: CheckpointWeights, config: BertConfig): ClassifierWeights {
  const { hiddenSize: hidden } = config;
  const find = new WeightFinder(weights, 'classifier.');
  const countLabels = (name: string) => weights.get(`classifier.${name}`)?.shape[0] ?? 1;
  // Only RoBERTa and its variants have `positionPadding`. Their head has its own dense layer; BERT's head uses the pooler.
  if (config.positionPadding !== undefined) {
    return {
      dense: find.dense('dense', hidden, hidden),
      projection: find.dense('out_proj', countLabels('out_proj.weight'), hidden),
    };
  }
  return {
    dense: new WeightFinder(weights, prefixOf(weights, WORDS, PREFIXES)).dense('pooler.dense', hidden, hidden),
    projection: find.dense('', countLabels('weight'), hidden),
  };
}
