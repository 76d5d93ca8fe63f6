import { TrawlError } from '../../src/base/errors.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import {
  type EncodeOptions,
  type EncodeResult,
  type EncoderInput,
  NO_ENCODER_LOAD,
  type TextEncoder,
} from '../../src/encoder/text-encoder.ts';

/** Stands for the encoder where all queries have vectors, so that the model need not exist. It embeds nothing. */
export class NoEncoder implements TextEncoder {
  readonly identity: ModelIdentity;
  readonly dimension: number;
  readonly separator = null;
  readonly load = NO_ENCODER_LOAD;
  readonly failure = undefined;

  /** @param identity of the index. */
  constructor(identity: ModelIdentity) {
    this.identity = identity;
    this.dimension = identity.dimension;
  }

  async encode(_inputs: readonly EncoderInput[], _options: EncodeOptions): Promise<EncodeResult> {
    throw new TrawlError('NOT_SUPPORTED', 'The queries have vectors, so there is no encoder for texts.');
  }

  async close(): Promise<void> {}
}
