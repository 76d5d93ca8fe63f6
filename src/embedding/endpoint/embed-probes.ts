import type { Probe } from '../../manifest/endpoint-record.ts';
import { encodeVector } from '../../manifest/probe-vectors.ts';
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
