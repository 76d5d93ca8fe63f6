import { TrawlError } from '../src/errors.ts';
import { type CheckpointWeights, WEIGHT_TYPES, type Weight } from './checkpoint-weights.ts';
import type { EncoderConfig } from './encoder-config.ts';

/** A matrix of a checkpoint is output × input, as PyTorch keeps it. */
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

/** The weights of an encoder by what they are for, every shape as its config wants it. */
export interface EncoderWeights {
  readonly words: Weight;
  readonly positions: Weight;
  /** Null where the model has no token types. */
  readonly tokenTypes: Weight | null;
  readonly embeddingNorm: LayerNorm;
  readonly layers: readonly EncoderLayer[];
  /** Null where the checkpoint has none: saved without, or of a kind that has none. */
  readonly pooler: Dense | null;
}

/** What makes scores of the first token: a dense layer with tanh (BERT's pooler, RoBERTa's own), then one row a label. */
export interface ClassifierWeights {
  readonly dense: Dense;
  readonly projection: Dense;
}

const WORDS = 'embeddings.word_embeddings.weight';
/** What stands before an encoder's own names in models with a head; the likeliest first. */
const PREFIXES = ['', 'bert.', 'roberta.', '0.auto_model.'];

/** Finds and checks an encoder's weights; others, such as a language-model head, are not looked at. MODEL_INVALID. */
export function findEncoderWeights(weights: CheckpointWeights, config: EncoderConfig): EncoderWeights {
  const find = new WeightFinder(weights, encoderPrefix(weights));
  const { hiddenSize: hidden, intermediateSize: inner } = config;
  if (find.has(`encoder.layer.${config.layers}.output.dense.weight`)) {
    throw new TrawlError(
      'MODEL_INVALID',
      `${weights.files.join(', ')} has weights of layer ${config.layers} (counted from 0), but config.json says ` +
        `num_hidden_layers ${config.layers}. Fetch the config.json that belongs to these weights.`,
    );
  }
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
      config.tokenTypes === 0
        ? null
        : find.weight('embeddings.token_type_embeddings.weight', [config.tokenTypes, hidden]),
    embeddingNorm: find.layerNorm('embeddings.LayerNorm', hidden),
    layers: Array.from({ length: config.layers }, (_, i) => layer(`encoder.layer.${i}`)),
    pooler: find.has('pooler.dense.weight') ? find.dense('pooler.dense', hidden, hidden) : null,
  };
}

/** Of a checkpoint of …ForSequenceClassification. MODEL_INVALID. */
export function findClassifierWeights(weights: CheckpointWeights, config: EncoderConfig): ClassifierWeights {
  const { hiddenSize: hidden } = config;
  const find = new WeightFinder(weights, 'classifier.');
  const labelsOf = (name: string) => weights.get(`classifier.${name}`)?.shape[0] ?? 1;
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

function encoderPrefix(weights: CheckpointWeights): string {
  const found = weights.names.filter((name) => name.endsWith(WORDS)).map((name) => name.slice(0, -WORDS.length));
  const prefix = PREFIXES.find((candidate) => found.includes(candidate)) ?? (found.length === 1 ? found[0] : undefined);
  if (prefix !== undefined) return prefix;
  throw new TrawlError(
    'MODEL_INVALID',
    found.length === 0
      ? `${weights.files.join(', ')} has no tensor ${WORDS} under any prefix; it has ${weights.names.slice(0, 5).join(', ')} …. ` +
          'Is it a checkpoint of the BERT family?'
      : `${weights.files.join(', ')} holds several encoders (${found.join(', ')}). Save the one that is wanted alone.`,
  );
}

/** Weights by name below a prefix, with their shapes checked. */
export class WeightFinder {
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
    const below = name === '' ? '' : `${name}.`;
    return { weight: this.weight(`${below}weight`, [outputs, inputs]), bias: this.weight(`${below}bias`, [outputs]) };
  }

  /** Under its present names, or gamma and beta as checkpoints that were converted from TensorFlow have it. */
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
        `${where} has no tensor ${whole}, which config.json makes necessary. The checkpoint is incomplete, or the ` +
          'config belongs to another.',
        { details: { tensor: whole } },
      );
    }
    if (weight.shape.length !== shape.length || weight.shape.some((length, i) => length !== shape[i])) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${where}: ${whole} has the shape [${weight.shape.join(', ')}]; by config.json it is [${shape.join(', ')}]. ` +
          'Config and weights must come from the same checkpoint.',
        { details: { tensor: whole, shape: weight.shape, expectedShape: shape } },
      );
    }
    if (!WEIGHT_TYPES.includes(weight.dtype)) {
      throw new TrawlError(
        'MODEL_INVALID',
        `${where}: ${whole} has the type ${weight.dtype}; supported are ${WEIGHT_TYPES.join(', ')}. Save the checkpoint ` +
          'in one of these (torch_dtype=float32); other precisions are made of it here.',
        { details: { tensor: whole, dtype: weight.dtype } },
      );
    }
    return weight;
  }
}
