import { TrawlError } from '../../base/errors.ts';
import type { BeforeTruncation, Pooling } from '../identity/model-identity.ts';
import type { ModelFolder } from '../model/model-folder.ts';

/** Number of values that a model returns for one input: the dimension, or a cross-encoder's labels. */
export function valuesPerInput({ kind, labels = 1, identity }: ModelFolder): number {
  return kind === 'cross-encoder' ? labels : identity.dimension;
}

/**
 * Pools the vectors of a text's tokens, without padding, into one vector. Sums run in float64 in token order and are rounded to
 * float32 once. `pooler` and `none` expect one row. Throws ENCODER_FAILED for a wrong shape.
 *
 * @param data a graph's output for one text, row-major, `tokens` × dimension; one row if the graph pools.
 */
export function pool(data: Float32Array, tokens: number, pooling: Pooling): Float32Array {
  const dimension = data.length / tokens;
  if (!Number.isInteger(dimension)) {
    throw new TrawlError('ENCODER_FAILED', `The model returned ${data.length} values for ${tokens} tokens.`);
  }
  switch (pooling) {
    case 'mean':
      return meanOfRows(data, tokens, dimension);
    case 'cls':
      return data.slice(0, dimension);
    case 'last':
      return data.slice((tokens - 1) * dimension);
    case 'pooler':
    case 'none':
      if (tokens === 1) return data.slice();
      throw new TrawlError(
        'ENCODER_FAILED',
        `Pooling "${pooling}" expects one vector per text, but the model returned ${tokens}. Import the model again with the ` +
          'pooling that it was trained with: trawl model add SOURCE --pooling mean, cls or last.',
      );
  }
}

/** Added to the variance; the default of `torch.nn.functional.layer_norm`. */
const LAYER_NORM_EPSILON = 1e-5;

/** The first values of a vector (Matryoshka), after a layer norm of all values if the model asks for it. Computed in float64. */
export function truncated(vector: Float32Array, values: number, before: BeforeTruncation | undefined): Float32Array {
  if (before === undefined) return vector.slice(0, values);
  const mean = vector.reduce((sum, value) => sum + value, 0) / vector.length;
  const variance = vector.reduce((sum, value) => sum + (value - mean) ** 2, 0) / vector.length;
  const scale = 1 / Math.sqrt(variance + LAYER_NORM_EPSILON);
  return Float32Array.from({ length: values }, (_, i) => (vector[i]! - mean) * scale);
}

/** Divides a vector by its Euclidean length, in place; a zero vector stays zero. Returns its argument. */
export function normalizeL2(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  // A squared float32 neither overflows nor vanishes in float64, so no scaling is needed.
  if (squares === 0) return vector;
  const length = Math.sqrt(squares);
  for (let i = 0; i < vector.length; i++) vector[i] = vector[i]! / length;
  return vector;
}

function meanOfRows(data: Float32Array, tokens: number, dimension: number): Float32Array {
  const sums = new Float64Array(dimension);
  for (let token = 0, at = 0; token < tokens; token++) {
    for (let column = 0; column < dimension; column++, at++) sums[column]! += data[at]!;
  }
  const mean = new Float32Array(dimension);
  for (let column = 0; column < dimension; column++) mean[column] = sums[column]! / tokens;
  return mean;
}
