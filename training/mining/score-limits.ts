import type { Candidate, DropReason } from './candidate.ts';

/** The thresholds of sentence-transformers' `mine_hard_negatives`, by the same names and formulas. Null: no limit. */
export interface ScoreLimits {
  readonly maxScore: number | null;
  readonly minScore: number | null;
  /** m: a candidate with the score s is dropped if s + m > p; p is the lowest score of a positive. */
  readonly absoluteMargin: number | null;
  /** r: dropped if s > p − |p| · r. */
  readonly relativeMargin: number | null;
}

/** Whether a limit needs the scores of the positives. */
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
  if (relativeMargin !== null && score > lowestPositive - Math.abs(lowestPositive) * relativeMargin)
    return 'relative_margin';
  return undefined;
}
