import { narrowToFloat16, widenFloat16 } from '../../src/base/system/float16.ts';
import { GaussianRandom } from './gaussian-random.ts';
import type { VectorBasis } from './vector-basis.ts';

/** Increase it whenever the same parameters give different rows. It is part of the cached files' names. */
export const GENERATOR_VERSION = 1;

/** Number of centred vectors in the sum that forms a row. A multiple of 4. */
const TERMS = 32;

/** The noise's share of the variance. Without noise, all rows would lie in the span of the basis. */
const NOISE_SHARE = 0.01;

export type VectorStream = 'rows' | 'queries';
const STREAM_WORDS: Readonly<Record<VectorStream, number>> = { rows: 0, queries: 0x5157 << 16 };

/**
 * Unit vectors with the mean and covariance of a basis. A row is
 *
 *     normalise( mean + √0.99 / √32 · Σ gᵢ cᵢ + noise )
 *
 * with 32 centred vectors cᵢ drawn from the basis with replacement, independent standard normal gᵢ, and isotropic noise with
 * 1 % of the basis's variance. Before normalisation it has the mean of the basis and 99 % of its covariance. Row i depends
 * only on seed, stream and i.
 */
export class SyntheticVectors {
  readonly basis: VectorBasis;
  readonly #seed: number;
  readonly #float16: boolean;

  /** `float16`: every value is rounded to the nearest float16; the length is then 1 within about 1e-4. */
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
      this.#one(
        new GaussianRandom(this.#seed, row % 2 ** 32, high),
        target.subarray(i * dimension, (i + 1) * dimension),
      );
    }
    if (this.#float16) target.set(widenFloat16(narrowToFloat16(target.subarray(0, count * dimension))));
  }

  #one(random: GaussianRandom, out: Float32Array): void {
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

/** A basis in the form that bench/size/synthetic_rows.cpp reads. */
export function encodeBasis({ dimension, count, mean, centred, variance }: VectorBasis): Uint8Array {
  const header = Buffer.alloc(20);
  header.writeUInt32LE(dimension, 0);
  header.writeUInt32LE(count, 4);
  header.writeUInt32LE(TERMS, 8);
  header.writeFloatLE(Math.sqrt((NOISE_SHARE * variance) / dimension), 12);
  header.writeFloatLE(Math.sqrt((1 - NOISE_SHARE) / TERMS), 16);
  const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) => new Uint8Array(buffer, byteOffset, byteLength);
  return Buffer.concat([header, bytesOf(mean), bytesOf(centred)]);
}
