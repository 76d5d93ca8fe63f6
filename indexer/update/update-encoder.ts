import type { TextEncoder } from '../../src/embedding/text-encoder.ts';
import { TrawlError } from '../../src/errors.ts';
import type { ModelIdentity } from '../../src/manifest/model-identity.ts';
import { fieldsDiffer } from '../build/build-settings.ts';

/**
 * The encoder under the identity that an index records, to which its new rows have to belong. What a model is called
 * does not matter, everything that decides a vector does.
 *
 * @throws TrawlError MODEL_MISMATCH.
 */
export function encoderOfIndex(model: ModelIdentity, encoder: TextEncoder): TextEncoder {
  const differences = fieldsDiffer('', decisive(model), decisive(encoder.identity)).map((text) => text.trim());
  if (model.batchInvariant && !encoder.identity.batchInvariant) {
    differences.push('batchInvariant: true, now false (the index was embedded on the CPU)');
  }
  if (differences.length > 0) {
    throw new TrawlError(
      'MODEL_MISMATCH',
      `The index was made with ${model.name}, the encoder is ${encoder.identity.name}; they differ in ` +
        `${differences.join('; ')}. All rows of an index come from one encoder: leave out --model and what is set ` +
        'against it, or build the index again.',
      { details: { index: model.name, encoder: encoder.identity.name, differences } },
    );
  }
  return {
    identity: model,
    dimension: encoder.dimension,
    separator: encoder.separator,
    encode: (inputs, options) => encoder.encode(inputs, options),
    close: () => encoder.close(),
  };
}

function decisive({ name: _, overrides: __, sourceSha256: ___, batchInvariant: ____, ...rest }: ModelIdentity): object {
  return rest;
}
