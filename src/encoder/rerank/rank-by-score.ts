export interface RankedPassage {
  /** Position of the passage in its list, from 0. */
  readonly index: number;
  readonly score: number;
}

/** Passages by score, largest first; equal scores in their order. */
export function rankByScore(scores: ArrayLike<number>): RankedPassage[] {
  return Array.from(scores, (score, index) => ({ index, score })).sort(
    (a, b) => b.score - a.score || a.index - b.index,
  );
}
