import { Random } from './random.ts';
import type { VectorBasis } from './vector-basis.ts';

/** Raised when the same parameters give other rows than before. */
export const GENERATOR_VERSION = 1;

/** Centred vectors that a row is a combination of. A multiple of 4. */
const TERMS = 32;

/** Share of the variance that is isotropic noise, so that rows leave the span of the basis. */
const NOISE_SHARE = 0.01;

export type VectorStream = 'rows' | 'queries';
const STREAM_WORDS: Readonly<Record<VectorStream, number>> = { rows: 0, queries: 0x5157 << 16 };

/**
 * Unit vectors with the mean and covariance of a basis. A row is
 *
 *     normalise( mean + √0.99 / √32 · Σ gᵢ cᵢ + noise )
 *
 * with 32 centred vectors cᵢ of the basis drawn with replacement, independent standard normal gᵢ, and isotropic noise with
 * 1 % of the basis's variance. Before it is normalised it has the mean and (for 99 %) the covariance of the basis. Row i
 * depends on seed, stream and i alone, whatever else is made.
 */
export class SyntheticVectors {
  readonly basis: VectorBasis;
  readonly #seed: number;
  readonly #float16: boolean;

  /** `float16`: every value is rounded to the nearest float16, after which the length is 1 within some 1e-4. */
  constructor(basis: VectorBasis, options: { seed: number; float16: boolean }) {
    this.basis = basis;
    this.#seed = options.seed;
    this.#float16 = options.float16;
  }

  /** Fills `target` (row-major, from index 0) with vectors [first, first + count) of the stream. */
  fill(stream: VectorStream, first: number, count: number, target: Float32Array): void {
    const { dimension } = this.basis;
    for (let i = 0; i < count; i++) {
      const row = first + i;
      const high = Math.floor(row / 2 ** 32) ^ STREAM_WORDS[stream];
      this.#one(new Random(this.#seed, row % 2 ** 32, high), target.subarray(i * dimension, (i + 1) * dimension));
    }
    if (this.#float16) for (let i = 0; i < count * dimension; i++) target[i] = roundToFloat16(target[i]!);
  }

  #one(random: Random, out: Float32Array): void {
    const { dimension, mean, centred, count, variance } = this.basis;
    const deviation = Math.sqrt((NOISE_SHARE * variance) / dimension);
    const scale = Math.sqrt((1 - NOISE_SHARE) / TERMS);
    for (let j = 0; j < dimension; j++) out[j] = mean[j]! + deviation * random.roughGaussian();
    for (let term = 0; term < TERMS; term += 4) {
      const a = random.below(count) * dimension;
      const b = random.below(count) * dimension;
      const c = random.below(count) * dimension;
      const d = random.below(count) * dimension;
      const ga = scale * random.gaussian();
      const gb = scale * random.gaussian();
      const gc = scale * random.gaussian();
      const gd = scale * random.gaussian();
      for (let j = 0; j < dimension; j++) {
        out[j]! += ga * centred[a + j]! + gb * centred[b + j]! + (gc * centred[c + j]! + gd * centred[d + j]!);
      }
    }
    let square = 0;
    for (let j = 0; j < dimension; j++) square += out[j]! * out[j]!;
    const shrink = 1 / Math.sqrt(square);
    for (let j = 0; j < dimension; j++) out[j]! *= shrink;
  }
}

const SMALLEST_NORMAL_HALF = 2 ** -14;

/** The float16 nearest to a float32 of magnitude below 2^15, ties to even. */
export function roundToFloat16(value: number): number {
  // Adding a number whose last bit is worth 2^-24 leaves multiples of 2^-24, as subnormal halves are.
  if (Math.abs(value) < SMALLEST_NORMAL_HALF) return Math.fround(Math.fround(value + 0.75) - 0.75);
  // Dekker's splitting: the upper 11 of the 24 bits.
  const product = Math.fround(value * 8193);
  return Math.fround(product - Math.fround(product - value));
}
