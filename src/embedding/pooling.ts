import { TrawlError } from '../errors.ts';
import type { Pooling } from '../manifest/model-identity.ts';

/** A graph's output for one text: row-major, `tokens` × `dimension` (1 × dimension for outputs of one vector a text). */
export interface TokenVectors {
  readonly data: Float32Array;
  readonly tokens: number;
  readonly dimension: number;
}

/**
 * One vector for a text of which every token is attended (its own, without padding). Sums run in float64 in token
 * order and are rounded to float32 once. `pooler` and `none` take an output that has one row already.
 */
export function pool(vectors: TokenVectors, pooling: Pooling): Float32Array {
  const { data, tokens, dimension } = vectors;
  if (tokens < 1 || data.length !== tokens * dimension) {
    throw new TrawlError(
      'ENCODING_FAILED',
      `The model gave ${data.length} values where ${tokens} × ${dimension} were expected.`,
    );
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
      if (tokens !== 1) {
        throw new TrawlError(
          'ENCODING_FAILED',
          `Pooling "${pooling}" takes an output of one vector a text, but the model gave ${tokens} vectors.`,
        );
      }
      return data.slice(0, dimension);
    default:
      throw new TrawlError('MODEL_INVALID', `Unknown pooling "${pooling satisfies never}".`);
  }
}

/** Divides by the Euclidean length, in place; a zero vector stays zero. Returns its argument. */
export function normalizeL2(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  // A float32 squared cannot overflow or vanish in float64, so no scaling is needed.
  if (squares === 0) return vector;
  const length = Math.sqrt(squares);
  for (let i = 0; i < vector.length; i++) vector[i] = vector[i]! / length;
  return vector;
}

/** Index of the first NaN or infinity, −1 where all values are finite. */
export function firstNonFinite(values: Float32Array): number {
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) return i;
  }
  return -1;
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
