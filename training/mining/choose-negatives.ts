import { createHash } from 'node:crypto';
import type { Candidate, DropReason } from './mined-query.ts';

/** The thresholds of sentence-transformers' `mine_hard_negatives`, by the same names and formulas. Null: no limit. */
export interface ScoreLimits {
  readonly maxScore: number | null;
  readonly minScore: number | null;
  /** m: a candidate with the score s is dropped if s + m > p; p is the lowest score of a positive. */
  readonly absoluteMargin: number | null;
  /** r: dropped if s > p − |p| · r. */
  readonly relativeMargin: number | null;
}

export function hasMargin({ absoluteMargin, relativeMargin }: ScoreLimits): boolean {
  return absoluteMargin !== null || relativeMargin !== null;
}

/**
 * Why the score of a candidate excludes it; undefined if it does not. A candidate without a score passes. `lowestPositive`: needed
 * with a margin.
 */
export function scoreReason(
  { score }: Candidate,
  limits: ScoreLimits,
  lowestPositive: number | null,
): DropReason | undefined {
  if (score === null) return undefined;
  const { maxScore, minScore, absoluteMargin, relativeMargin } = limits;
  if (maxScore !== null && score > maxScore) return 'max_score';
  if (minScore !== null && score < minScore) return 'min_score';
  if (lowestPositive === null) return undefined;
  if (absoluteMargin !== null && score + absoluteMargin > lowestPositive) return 'absolute_margin';
  const limit =
    relativeMargin === null ? Number.POSITIVE_INFINITY : lowestPositive - Math.abs(lowestPositive) * relativeMargin;
  return score > limit ? 'relative_margin' : undefined;
}

/** `top`: the best ones. `random`: any, each with the same probability. */
export const SAMPLING_STRATEGIES = ['top', 'random'] as const;

export interface Sampling {
  readonly strategy: (typeof SAMPLING_STRATEGIES)[number];
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
  const draws = candidates.map(({ id, row }, place) => {
    const hash = createHash('sha256')
      .update(JSON.stringify([seed, key, id, row]))
      .digest('hex');
    return { place, hash };
  });
  draws.sort((a, b) => (a.hash < b.hash ? -1 : a.hash > b.hash ? 1 : a.place - b.place));
  const chosen = new Set(draws.slice(0, count).map(({ place }) => place));
  return candidates.filter((_, place) => chosen.has(place));
}
