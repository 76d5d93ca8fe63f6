import { decodeVector, encodeVector } from '../../base/base64-vector.ts';
import type { Probe } from '../identity/endpoint-record.ts';
import type { ModelIdentity } from '../identity/model-identity.ts';
import { normalizeL2 } from '../inference/pooling.ts';
import type { TextEncoder } from '../text-encoder.ts';

export type ProbeText = Pick<Probe, 'name' | 'inputType' | 'text'>;

export const LONG_PROBE = 'long';
/** Words of the longest probe: more than the 512 tokens of most small models. */
const LONG_WORDS = 700;
/** Above this many tokens, the longest probe does not reach the limit: it would cost more than it shows. */
const MAX_LONG_WORDS = 2_500;

const WORDS = ['river', 'glass', 'seven', 'north', 'paper', 'light', 'stone', 'early', 'music', 'table', 'winter'];

/**
 * The texts by which a changed endpoint is recognised: a short one as query and as passage (a lost prompt), other scripts, spaces at
 * both ends, upper and lower case (a changed tokeniser), digits and signs, and a long one, whose truncation may change. `maxTokens` is
 * the limit that the endpoint states.
 */
export function probeTexts(maxTokens: number | null): readonly ProbeText[] {
  const beyondLimit = (maxTokens ?? 0) * 1.2;
  const words = beyondLimit > MAX_LONG_WORDS ? LONG_WORDS : Math.max(LONG_WORDS, beyondLimit);
  return [
    { name: 'query', inputType: 'query', text: 'which river flows through Vienna' },
    { name: 'passage', inputType: 'passage', text: 'which river flows through Vienna' },
    { name: 'scripts', inputType: 'passage', text: 'Žižkov, Αθήνα, Київ, القاهرة, 東京, 서울' },
    { name: 'spaces', inputType: 'passage', text: '  a bridge over the Danube \n' },
    { name: 'upper case', inputType: 'passage', text: 'THE BRIDGE IS OLD' },
    { name: 'lower case', inputType: 'passage', text: 'the bridge is old' },
    { name: 'digits', inputType: 'passage', text: '3.14159 + 2/7 = ? (1989-11-09, "A-4", 50 %)' },
    { name: LONG_PROBE, inputType: 'passage', text: longText(Math.ceil(words)) },
  ];
}

/** Not periodic, so that a text that is cut at another place has another vector. */
function longText(words: number): string {
  return Array.from({ length: words }, (_, i) => WORDS[(i * i + Math.floor(i / 7)) % WORDS.length]).join(' ');
}

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
