import { decodeVector, encodeVector } from '../../base/base64-vector.ts';
import type { Probe } from '../identity/endpoint-record.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import { normalizeL2 } from '../inference/pooling.ts';
import type { TextEncoder } from '../text-encoder.ts';

/** Embeds the texts of recorded probes with any encoder. A text that the endpoint refused is left out. */
export async function embedProbes(encoder: TextEncoder, recorded: readonly Probe[]): Promise<Probe[]> {
  const probes = recorded.filter(({ vector }) => vector !== null);
  return Promise.all(
    probes.map(async ({ name, inputType, text }): Promise<Probe> => {
      const { vectors, outcomes } = await encoder.encode([text], { inputType });
      const outcome = outcomes[0]!;
      if (!outcome.ok) throw outcome.error;
      return { name, inputType, text, vector: encodeVector(vectors), tokens: outcome.tokens };
    }),
  );
}

/** The recorded probes of an endpoint's index as rows of the index: cut to its dimension, and normalised if it is. */
export function storedProbes({ endpoint, dimension, normalize }: ModelIdentity): Probe[] {
  return endpoint!.probes.map((probe) => {
    if (probe.vector === null) return probe;
    const row = decodeVector(probe.vector).slice(0, dimension);
    return { ...probe, vector: encodeVector(normalize ? normalizeL2(row) : row) };
  });
}
