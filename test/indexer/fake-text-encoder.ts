import { createHash } from 'node:crypto';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import type { FolderModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import {
  type EncodeOptions,
  type EncodeOutcome,
  type EncodeResult,
  type EncoderInput,
  NO_ENCODER_LOAD,
  type TextEncoder,
} from '../../src/encoder/text-encoder.ts';
import { modelIdentity } from '../helpers/model-identity.ts';

export const FAKE_MODEL = modelIdentity({ name: 'fake', dimension: 8, maxTokens: { query: 32, passage: 16 } });

export interface FakeEncoderOptions {
  readonly model?: Partial<FolderModelIdentity>;
  /** Called before each batch. */
  readonly before?: (inputs: readonly EncoderInput[], options: EncodeOptions) => Promise<void> | void;
  /** Texts that cannot be embedded. */
  readonly failing?: (text: string) => boolean;
  /** The value of the first column, if not that of the hash. */
  readonly firstValue?: (text: string) => number | undefined;
}

/** An encoder without a model: the vector of a text is made of its hash. It records its calls. */
export class FakeTextEncoder implements TextEncoder {
  readonly identity: FolderModelIdentity;
  readonly separator = '[SEP]';
  readonly load = NO_ENCODER_LOAD;
  readonly failure = undefined;
  readonly batches: (readonly EncoderInput[])[] = [];
  readonly #options: FakeEncoderOptions;

  constructor(options: FakeEncoderOptions = {}) {
    this.#options = options;
    this.identity = { ...FAKE_MODEL, ...options.model };
  }

  get dimension(): number {
    return this.identity.dimension;
  }

  get texts(): EncoderInput[] {
    return this.batches.flat();
  }

  vectorOf(text: string): Float32Array {
    const hash = createHash('sha256').update(text).digest();
    const vector = Float32Array.from({ length: this.dimension }, (_, i) => (hash[i]! - 128) / 128);
    vector[0] = this.#options.firstValue?.(text) ?? vector[0]!;
    return vector;
  }

  async encode(inputs: readonly EncoderInput[], options: EncodeOptions): Promise<EncodeResult> {
    this.batches.push(inputs);
    await this.#options.before?.(inputs, options);
    throwIfCancelled(options.signal);
    const vectors = new Float32Array(inputs.length * this.dimension);
    const outcomes = inputs.map((input, i): EncodeOutcome => {
      const text = String(input);
      if (this.#options.failing?.(text) === true) {
        return { ok: false, error: new TrawlError('ENCODING_FAILED', 'The encoder failed on a text: on purpose.') };
      }
      vectors.set(this.vectorOf(text), i * this.dimension);
      const words = text.split(/\s+/).length;
      const { inputType } = options;
      const limit = this.identity.maxTokens[inputType === 'plain' ? 'passage' : inputType];
      return {
        ok: true,
        tokens: Math.min(words, limit),
        truncated: words > limit,
        cut: words > limit ? 'tail' : 'nothing',
      };
    });
    return { vectors, outcomes, waitedMs: 0 };
  }

  async close(): Promise<void> {}
}
