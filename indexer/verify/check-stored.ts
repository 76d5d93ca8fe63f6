import type { TextEncoder } from '../../src/encoder/text-encoder.ts';
import type { CheckStored } from '../../src/search/opening/open-index-encoder.ts';

const SAMPLE = 16;

/** Compares an endpoint's vectors with the vectors of an index that was built with a model folder. */
export const checkStored: CheckStored = async (folder, encoder) => {
  // Imported here, because only an endpoint needs it.
  const [{ verifySample }, { openIndexDirectory }, { requireVectors }] = await Promise.all([
    import('./verify-sample.ts'),
    import('../../src/search/opening/index-directory.ts'),
    import('../../src/index/manifest/index-manifest.ts'),
  ]);
  const { shards, manifest } = openIndexDirectory(folder);
  const { model } = requireVectors(folder, manifest);
  let failure: unknown;
  const encode: TextEncoder['encode'] = async (inputs, options) => {
    const result = await encoder.encode(inputs, options).catch((error: unknown) => {
      failure ??= error;
      throw error;
    });
    failure ??= result.outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error]))[0];
    return result;
  };
  const { problems, ...report } = await verifySample(
    shards,
    { model, corpus: manifest.corpus },
    { encode },
    { sample: SAMPLE, onPassages: () => undefined },
  );
  // An endpoint that fails has no other vectors.
  if (failure !== undefined) throw failure;
  return { isSame: problems.length === 0, passages: report.passages, largestDistance: report.largestDistance };
};
