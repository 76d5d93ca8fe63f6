import { Random } from '../src/base/random.ts';
import type { ModelIdentity } from '../src/encoder/identity/model-identity.ts';
import {
  type EncodeOptions,
  type EncodeResult,
  type EncoderInput,
  NO_ENCODER_LOAD,
  type TextEncoder,
} from '../src/encoder/text-encoder.ts';

/** Number of vectors that are made in advance and returned again and again. */
const ROWS = 4_096;

/** An encoder that takes almost no time, to measure the rest of a build or of a search. */
export class NoOpEncoder implements TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  readonly separator = null;
  readonly load = NO_ENCODER_LOAD;
  readonly failure = undefined;
  readonly #vectors: Float32Array;
  #next = 0;

  constructor(dimension: number) {
    const random = new Random(dimension, ROWS, 1);
    this.dimension = dimension;
    this.#vectors = Float32Array.from(
      { length: ROWS * dimension },
      () => random.roughGaussian() / Math.sqrt(dimension),
    );
    this.identity = {
      name: 'none',
      sha256: '0'.repeat(64),
      architecture: 'none',
      dimension,
      pooling: 'none',
      normalize: false,
      similarity: 'inner-product',
      prefixes: { query: '', passage: '' },
      maxTokens: { query: 512, passage: 512 },
      precision: 'float32',
      batchInvariant: true,
    };
  }

  async encode(inputs: readonly EncoderInput[], _options: EncodeOptions): Promise<EncodeResult> {
    if (this.#next + inputs.length > ROWS) this.#next = 0;
    const vectors = this.#vectors.slice(this.#next * this.dimension, (this.#next + inputs.length) * this.dimension);
    this.#next += inputs.length;
    const outcomes = inputs.map(() => ({ ok: true, tokens: 0, truncated: false, cut: 'nothing' }) as const);
    return { vectors, outcomes, waitedMs: 0 };
  }

  async close(): Promise<void> {}
}
