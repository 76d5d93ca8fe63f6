import { TrawlError } from '../src/errors.ts';
import { type CheckpointWeights, WEIGHT_TYPES, type Weight } from './checkpoint-weights.ts';
import type { EncoderConfig } from './encoder-config.ts';

/** A dense layer. `weight` is output × input, as PyTorch stores it. */
export interface Dense {
  readonly weight: Weight;
  readonly bias: Weight;
}

export interface LayerNorm {
  readonly weight: Weight;
  readonly bias: Weight;
}

export interface EncoderLayer {
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
export interface EncoderWeights {
  readonly words: Weight;
  readonly positions: Weight;
  /** Null if the model has no token types. */
  readonly tokenTypes: Weight | null;
  readonly embeddingNorm: LayerNorm;
  readonly layers: readonly EncoderLayer[];
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
export function findEncoderWeights(weights: CheckpointWeights, config: EncoderConfig): EncoderWeights {
  const prefix = encoderPrefix(weights);
  checkLayers(weights, prefix, config.layers);
  const find = new WeightFinder(weights, prefix);
  const { hiddenSize: hidden, intermediateSize: inner } = config;
  const layer = (name: string): EncoderLayer => ({
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
export function findClassifierWeights(weights: CheckpointWeights, config: EncoderConfig): ClassifierWeights {
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
    dense: new WeightFinder(weights, encoderPrefix(weights)).dense('pooler.dense', hidden, hidden),
    projection: find.dense('', labelsOf('weight'), hidden),
  };
}

/** Throws if the checkpoint has more layers than the config says: the graph would silently omit them. */
function checkLayers(weights: CheckpointWeights, prefix: string, layers: number): void {
  const start = `${prefix}encoder.layer.`;
  const numbers = weights.names
    .filter((name) => name.startsWith(start))
    .map((name) => Number.parseInt(name.slice(start.length), 10));
  // -Infinity without layers; NaN if a name has no number.
  const last = Math.max(...numbers);
  if (!(last >= layers)) return;
  throw new TrawlError(
    'MODEL_INVALID',
    `${weights.files.join(', ')} has weights of layer ${last} (counted from 0), but num_hidden_layers in config.json is ` +
      `${layers}. Fetch the config.json that belongs to these weights.`,
    { details: { layer: last, layers } },
  );
}

function encoderPrefix(weights: CheckpointWeights): string {
  const found = weights.names.filter((name) => name.endsWith(WORDS)).map((name) => name.slice(0, -WORDS.length));
  const prefix = PREFIXES.find((candidate) => found.includes(candidate)) ?? (found.length === 1 ? found[0] : undefined);
  if (prefix !== undefined) return prefix;
  throw new TrawlError(
    'MODEL_INVALID',
    found.length === 0
      ? `${weights.files.join(', ')} is not a BERT-family checkpoint: no tensor is named ${WORDS}, with or without a prefix. ` +
          `Its first tensors are ${weights.names.slice(0, 5).join(', ')}.`
      : `${weights.files.join(', ')} contains several encoders (${found.join(', ')}). Save one of them as a separate checkpoint.`,
  );
}

/** Looks up weights by name under a prefix and checks shape and type. */
class WeightFinder {
  readonly #weights: CheckpointWeights;
  readonly #prefix: string;

  constructor(weights: CheckpointWeights, prefix: string) {
    this.#weights = weights;
    this.#prefix = prefix;
  }

  has(name: string): boolean {
    return this.#weights.get(this.#prefix + name) !== undefined;
  }

  dense(name: string, outputs: number, inputs: number): Dense {
    // An empty name: the prefix is the name of the layer, as in `classifier.weight`.
    const start = name === '' ? '' : `${name}.`;
    return { weight: this.weight(`${start}weight`, [outputs, inputs]), bias: this.weight(`${start}bias`, [outputs]) };
  }

  /** Checkpoints converted from TensorFlow name the two tensors gamma and beta. */
  layerNorm(name: string, size: number): LayerNorm {
    const isOld = !this.has(`${name}.weight`) && this.has(`${name}.gamma`);
    const [weight, bias] = isOld ? ['gamma', 'beta'] : ['weight', 'bias'];
    return { weight: this.weight(`${name}.${weight}`, [size]), bias: this.weight(`${name}.${bias}`, [size]) };
  }

  weight(name: string, shape: readonly number[]): Weight {
    const whole = this.#prefix + name;
    const weight = this.#weights.get(whole);
    const where = this.#weights.files.join(', ');
    if (weight === undefined) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${where} has no tensor ${whole}, which the architecture in config.json needs. The checkpoint is incomplete, or ` +
          'config.json belongs to another checkpoint.',
        { details: { tensor: whole } },
      );
    }
    if (weight.shape.length !== shape.length || weight.shape.some((length, i) => length !== shape[i])) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${where}: ${whole} has the shape [${weight.shape.join(', ')}], but config.json implies [${shape.join(', ')}]. ` +
          'Config and weights must come from the same checkpoint.',
        { details: { tensor: whole, shape: weight.shape, expectedShape: shape } },
      );
    }
    if (!WEIGHT_TYPES.includes(weight.dtype)) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${where}: ${whole} has the type ${weight.dtype}. Expected one of ${WEIGHT_TYPES.join(', ')}. Save the checkpoint ` +
          'in one of these types (torch_dtype=float32); the import can quantise it to int8.',
        { details: { tensor: whole, dtype: weight.dtype } },
      );
    }
    return weight;
  }
}
