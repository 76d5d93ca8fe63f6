import type { EncodeOptions, EncodeResult, EncoderInput, TextEncoder } from '../src/embedding/text-encoder.ts';
import type { ModelIdentity } from '../src/manifest/model-identity.ts';
import { Random } from './random.ts';

/** Rows that are made beforehand and given again and again. */
const KEPT_ROWS = 4_096;

/** An encoder that costs nothing: what a build takes with it, it takes beside any encoder. */
export class IdleEncoder implements TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  readonly separator = null;
  readonly #kept: Float32Array;
  #next = 0;

  constructor(dimension: number) {
    const random = new Random(dimension, KEPT_ROWS, 1);
    this.dimension = dimension;
    this.#kept = Float32Array.from(
      { length: KEPT_ROWS * dimension },
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
    if (this.#next + inputs.length > KEPT_ROWS) this.#next = 0;
    const vectors = this.#kept.slice(this.#next * this.dimension, (this.#next + inputs.length) * this.dimension);
    this.#next += inputs.length;
    return { vectors, outcomes: inputs.map(() => ({ ok: true, tokens: 0, truncated: false, cut: 'nothing' })) };
  }

  async close(): Promise<void> {}
}
