import { invalidModel } from '../../src/encoder/model/json-file.ts';
import { type CheckpointWeights, WEIGHT_TYPES, type Weight } from './checkpoint-weights.ts';

/** A dense layer. `weight` is output × input, as PyTorch stores it. */
export interface Dense {
  readonly weight: Weight;
  readonly bias?: Weight;
}

export interface LayerNorm {
  readonly weight: Weight;
  readonly bias?: Weight;
}

/** Looks up weights by name under a prefix and checks shape and type. */
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
    // An empty name: the prefix is the name of the layer, as in `classifier.weight`.
    const start = name === '' ? '' : `${name}.`;
    return { weight: this.weight(`${start}weight`, [outputs, inputs]), bias: this.weight(`${start}bias`, [outputs]) };
  }

  /** A dense layer without a bias. Throws MODEL_INVALID if the checkpoint has one. */
  matrix(name: string, outputs: number, inputs: number): Dense {
    this.#refuseBias(name);
    return { weight: this.weight(`${name}.weight`, [outputs, inputs]) };
  }

  /** A dense layer with or without a bias, as config.json says. */
  denseOrMatrix(hasBias: boolean, name: string, outputs: number, inputs: number): Dense {
    return hasBias ? this.dense(name, outputs, inputs) : this.matrix(name, outputs, inputs);
  }

  /** Checkpoints converted from TensorFlow name the two tensors gamma and beta. */
  layerNorm(name: string, size: number): LayerNorm {
    const isOld = !this.has(`${name}.weight`) && this.has(`${name}.gamma`);
    const [weight, bias] = isOld ? ['gamma', 'beta'] : ['weight', 'bias'];
    return { weight: this.weight(`${name}.${weight}`, [size]), bias: this.weight(`${name}.${bias}`, [size]) };
  }

  /** A bias that config.json does not announce would silently be left out. */
  #refuseBias(name: string): void {
    if (!this.has(`${name}.bias`)) return;
    const tensor = `${this.#prefix}${name}.bias`;
    throw invalidModel(
      `${this.#weights.files.join(', ')} has the tensor ${tensor}, but the architecture in config.json has ` +
        'no bias there. Config and weights must come from the same checkpoint.',
      { details: { tensor } },
    );
  }

  normWithBias(hasBias: boolean, name: string, size: number): LayerNorm {
    if (hasBias) return this.layerNorm(name, size);
    this.#refuseBias(name);
    return { weight: this.weight(`${name}.weight`, [size]) };
  }

  weight(name: string, shape: readonly number[]): Weight {
    const tensor = this.#prefix + name;
    const weight = this.#weights.get(tensor);
    const where = this.#weights.files.join(', ');
    if (weight === undefined) {
      throw invalidModel(
        `${where} has no tensor ${tensor}, which the architecture in config.json needs. The checkpoint is incomplete, or ` +
          'config.json belongs to another checkpoint.',
        { details: { tensor } },
      );
    }
    if (weight.shape.length !== shape.length || weight.shape.some((length, i) => length !== shape[i])) {
      throw invalidModel(
        `${where}: ${tensor} has the shape [${weight.shape.join(', ')}], but config.json implies [${shape.join(', ')}]. ` +
          'Config and weights must come from the same checkpoint.',
        { details: { tensor, shape: weight.shape, expectedShape: shape } },
      );
    }
    if (!WEIGHT_TYPES.includes(weight.dtype)) {
      throw invalidModel(
        `${where}: ${tensor} has the type ${weight.dtype}. Expected one of ${WEIGHT_TYPES.join(', ')}. Save the checkpoint ` +
          'in one of these types (torch_dtype=float32); the import can quantise it to int8.',
        { details: { tensor, dtype: weight.dtype } },
      );
    }
    return weight;
  }
}

/**
 * The prefix of an encoder's tensor names in a model with a head, found by the name of its embedding `table`; `known` prefixes come
 * first, in order. Throws MODEL_INVALID if there is no table, or several under unknown prefixes.
 */
export function prefixOf(weights: CheckpointWeights, table: string, known: readonly string[]): string {
  const found = weights.names
    .filter((name) => name === table || name.endsWith(`.${table}`))
    .map((name) => name.slice(0, -table.length));
  const prefix = known.find((candidate) => found.includes(candidate)) ?? (found.length === 1 ? found[0] : undefined);
  if (prefix !== undefined) return prefix;
  throw invalidModel(
    found.length === 0
      ? `${weights.files.join(', ')} does not hold the encoder that config.json describes: no tensor is named ${table}, with or ` +
          `without a prefix. Its first tensors are ${weights.names.slice(0, 5).join(', ')}.`
      : `${weights.files.join(', ')} contains several encoders (${found.join(', ')}). Save one of them as a separate checkpoint.`,
  );
}

/**
 * Throws MODEL_INVALID if the checkpoint has more layers than the config says: the graph would silently omit them. `start` is what
 * the names of a layer's tensors begin with, before its number; `key` names the number of layers in config.json.
 */
export function checkLayers(
  weights: Pick<CheckpointWeights, 'names' | 'files'>,
  start: string,
  layers: number,
  key: string,
): void {
  const numbers = weights.names
    .filter((name) => name.startsWith(start))
    .map((name) => Number.parseInt(name.slice(start.length), 10));
  // -Infinity without layers; NaN if a name has no number.
  const last = numbers.reduce((largest, number) => Math.max(largest, number), Number.NEGATIVE_INFINITY);
  if (!(last >= layers)) return;
  throw invalidModel(
    `${weights.files.join(', ')} has weights of layer ${last} (counted from 0), but ${key} in config.json is ` +
      `${layers}. Fetch the config.json that belongs to these weights.`,
    { details: { layer: last, layers } },
  );
}
