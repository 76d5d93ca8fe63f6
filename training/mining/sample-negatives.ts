import { createHash } from 'node:crypto';
import type { Candidate } from './candidate.ts';

/** `top`: the best ones. `random`: any, each with the same probability. */
export const SAMPLING_STRATEGIES = ['top', 'random'] as const;
type SamplingStrategy = (typeof SAMPLING_STRATEGIES)[number];

export interface Sampling {
  readonly strategy: SamplingStrategy;
  readonly seed: number;
  /** The most negatives of a query. */
  readonly count: number;
}

/**
 * Chooses negatives; they stay in their order. A random choice takes the smallest hashes of seed, query and passage: it depends on
 * nothing else, so that a query has the same negatives wherever it stands in the file.
 */
export function sampleNegatives(
  candidates: readonly Candidate[],
  { strategy, seed, count }: Sampling,
  key: string,
): readonly Candidate[] {
  if (strategy === 'top' || candidates.length <= count) return candidates.slice(0, count);
  const draws = candidates.map((candidate, place) => ({ place, hash: drawOf(seed, key, candidate) }));
  draws.sort((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : a.place - b.place));
  const chosen = new Set(draws.slice(0, count).map(({ place }) => place));
  return candidates.filter((_, place) => chosen.has(place));
}

function drawOf(seed: number, key: string, { id, row }: Candidate): string {
  return createHash('sha256')
    .update(JSON.stringify([seed, key, id, row]))
    .digest('hex');
}
