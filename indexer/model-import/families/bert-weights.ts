import type { CheckpointWeights, Weight } from '../checkpoint-weights.ts';
import { checkLayers, type Dense, type LayerNorm, prefixOf, WeightFinder } from '../weight-finder.ts';
import type { BertConfig } from './bert-config.ts';

export interface BertLayer {
  readonly query: Dense;
  readonly key: Dense;
  readonly value: Dense;
  readonly attentionOutput: Dense;
  readonly attentionNorm: LayerNorm;
  readonly intermediate: Dense;
  readonly output: Dense;
  readonly outputNorm: LayerNorm;
}

/** The weights of an encoder. Their shapes agree with the config. */
export interface BertWeights {
  readonly words: Weight;
  readonly positions: Weight;
  /** Null if the model has no token types. */
  readonly tokenTypes: Weight | null;
  readonly embeddingNorm: LayerNorm;
  readonly layers: readonly BertLayer[];
  /** Null if the checkpoint has no pooler. */
  readonly pooler: Dense | null;
}

/** A classification head: logits = projection(tanh(dense(first token))). */
export interface ClassifierWeights {
  /** BERT's pooler, or the dense layer of RoBERTa's classifier. */
  readonly dense: Dense;
  /** labels × hidden. */
  readonly projection: Dense;
}

const WORDS = 'embeddings.word_embeddings.weight';
/** Prefixes of the encoder's tensor names in models with a head, the most common first. */
const PREFIXES = ['', 'bert.', 'roberta.', '0.auto_model.'];

/**
 * Finds an encoder's weights and checks their shapes and types. Ignores other tensors, such as a language-model head.
 * Throws MODEL_INVALID.
 */
export function findBertWeights(weights: CheckpointWeights, config: BertConfig): BertWeights {
  const prefix = prefixOf(weights, WORDS, PREFIXES);
  checkLayers(weights, `${prefix}encoder.layer.`, config.layers, 'num_hidden_layers');
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner } = config;
  const layer = (name: string): BertLayer => ({
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
      config.tokenTypeRows === 0
        ? null
        : find.weight('embeddings.token_type_embeddings.weight', [config.tokenTypeRows, hidden]),
    embeddingNorm: find.layerNorm('embeddings.LayerNorm', hidden),
    layers: Array.from({ length: config.layers }, (_, i) => layer(`encoder.layer.${i}`)),
    pooler: find.has('pooler.dense.weight') ? find.dense('pooler.dense', hidden, hidden) : null,
  };
}

/** The head of a …ForSequenceClassification checkpoint. Throws MODEL_INVALID. */
export function findClassifierWeights(weights: CheckpointWeights, config: BertConfig): ClassifierWeights {
  const { hiddenSize: hidden } = config;
  const find = new WeightFinder(weights, 'classifier.');
  const labelsOf = (name: string) => weights.get(`classifier.${name}`)?.shape[0] ?? 1;
  // Only RoBERTa and its variants have `positionPadding`. Their head has a dense layer of its own; BERT's head uses the pooler.
  if (config.positionPadding !== null) {
    return {
      dense: find.dense('dense', hidden, hidden),
      projection: find.dense('out_proj', labelsOf('out_proj.weight'), hidden),
    };
  }
  return {
    dense: new WeightFinder(weights, prefixOf(weights, WORDS, PREFIXES)).dense('pooler.dense', hidden, hidden),
    projection: find.dense('', labelsOf('weight'), hidden),
  };
}
