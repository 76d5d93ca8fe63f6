import { createHash } from 'node:crypto';
import { decodeVector } from '../base/base64-vector.ts';
import { TrawlError } from '../base/errors.ts';
import type { Metric } from '../engine/metric.ts';
import { concatenated } from '../engine/typed-arrays.ts';
import type { ModelIdentity } from './identity/model-identity.ts';
import { NO_ENCODER_LOAD, type TextEncoder } from './text-encoder.ts';

const ARCHITECTURE = 'written';

/** Stands where an index names its model if clients wrote its vectors: no model makes vectors that can be compared with them. */
export function writtenIdentity(
  field: string,
  space: { readonly dimension: number; readonly similarity: Metric; readonly normalize: boolean },
): ModelIdentity {
  return {
    name: field,
    sha256: createHash('sha256').update(JSON.stringify(space)).digest('hex'),
    architecture: ARCHITECTURE,
    ...space,
    pooling: 'none',
    prefixes: { query: '', passage: '' },
    maxTokens: { query: null, passage: null },
    precision: null,
    batchInvariant: true,
  };
}

export function isWritten(model: ModelIdentity | null): model is ModelIdentity {
  return model?.architecture === ARCHITECTURE;
}

/** Reads vectors from texts of `encodeVector`, with which an index is built. An empty text is a row without a vector, which gets zeros. */
export function decodingEncoder(identity: ModelIdentity): TextEncoder {
  return encoderOf(identity, (text) => (text === '' ? new Float32Array(identity.dimension) : decodeVector(text)));
}

/** Stands for the encoder that an index of such vectors does not have. @throws TrawlError NOT_SUPPORTED for every text. */
export function refusingEncoder(identity: ModelIdentity): TextEncoder {
  return encoderOf(identity, () => {
    throw new TrawlError(
      'NOT_SUPPORTED',
      `Clients wrote the vectors of the field ${identity.name}, so this server has no model for texts. Search the words by BM25, or send a query_vector with knn of Elasticsearch's _search.`,
    );
  });
}

function encoderOf(identity: ModelIdentity, vectorOf: (text: string) => Float32Array): TextEncoder {
  return {
    identity,
    dimension: identity.dimension,
    separator: null,
    failure: undefined,
    load: NO_ENCODER_LOAD,
    async encode(inputs) {
      const vectors = inputs.map((input) => vectorOf(typeof input === 'string' ? input : input.query));
      const outcomes = inputs.map(() => ({ ok: true, tokens: 0, truncated: false, cut: 'nothing' }) as const);
      return { vectors: concatenated(vectors), outcomes, waitedMs: 0 };
    },
    close: async () => undefined,
  };
}
