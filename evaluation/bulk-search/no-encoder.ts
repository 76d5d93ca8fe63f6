import { TrawlError } from '../../src/base/errors.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import { NO_ENCODER_LOAD, type TextEncoder } from '../../src/encoder/text-encoder.ts';

/** Stands for the encoder of an index where all queries have vectors, so that the model need not exist. It embeds nothing. */
export function noEncoder(identity: ModelIdentity): TextEncoder {
  return {
    identity,
    dimension: identity.dimension,
    separator: null,
    load: NO_ENCODER_LOAD,
    failure: undefined,
    encode: async () => {
      throw new TrawlError('NOT_SUPPORTED', 'The queries have vectors, so there is no encoder for texts.');
    },
    close: async () => undefined,
  };
}
