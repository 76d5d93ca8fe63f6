import { bug, TrawlError } from '../../src/base/errors.ts';
import type { ModelIdentity } from '../../src/encoder/identity/model-identity.ts';
import {
  comparedFields,
  compareProbes,
  describeSimilarities,
  haveSameProbes,
} from '../../src/encoder/identity/same-model.ts';
import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import { fieldsDiffer } from '../building/build-settings.ts';

/**
 * The encoder with the identity that the index records; undefined for an index without vectors. The name of the model may differ,
 * but no setting that affects vectors.
 *
 * @throws TrawlError MODEL_MISMATCH.
 */
export function encoderOfIndex(model: ModelIdentity | null, encoder: TextEncoder | undefined): TextEncoder | undefined {
  // An index without vectors needs no encoder.
  if (model === null) return undefined;
  if (encoder === undefined) throw bug('an index with vectors is updated without an encoder');
  const { identity } = encoder;
  const differences = fieldsDiffer('', vectorSettings(model), vectorSettings(identity));
  if (!haveSameProbes(model, identity) && differences.length === 0) {
    const similarities = compareProbes(model.endpoint!.probes, identity.endpoint!.probes);
    differences.push(`the vectors of the probes (similarities: ${describeSimilarities(similarities)})`);
  }
  if (model.batchInvariant && !identity.batchInvariant) {
    differences.push('batchInvariant: true, now false (the index was embedded on a CPU)');
  }
  if (differences.length > 0) {
    throw new TrawlError(
      'MODEL_MISMATCH',
      `The index was built with ${model.name}, but the encoder is ${identity.name}. They differ: ` +
        `${differences.join('; ')}. All rows of an index must come from one encoder: leave out --model and its options, or ` +
        'build the index again.',
      { details: { index: model.name, encoder: identity.name, differences } },
    );
  }
  return {
    identity: model,
    dimension: encoder.dimension,
    separator: encoder.separator,
    get failure() {
      return encoder.failure;
    },
    get load() {
      return encoder.load;
    },
    encode: (inputs, options) => encoder.encode(inputs, options),
    close: () => encoder.close(),
    check: async (signal) => encoder.check?.(signal),
    busyCalls: (texts) => encoder.busyCalls?.(texts) ?? 0,
  };
}

/** The fields of a model's identity that two equal encoders may have different. `batchInvariant` is compared by itself. */
const OTHER_FIELDS: ReadonlySet<string> = new Set<keyof ModelIdentity>([
  'name',
  'overrides',
  'sourceSha256',
  'batchInvariant',
]);

function vectorSettings(model: ModelIdentity): object {
  return Object.fromEntries(Object.entries(comparedFields(model)).filter(([field]) => !OTHER_FIELDS.has(field)));
}
