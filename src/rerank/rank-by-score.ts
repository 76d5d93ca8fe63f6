/** Positions of the scores, largest first; equal scores in their order. */
export function rankByScore(scores: ArrayLike<number>): number[] {
  return Array.from(scores, (_, i) => i).sort((a, b) => scores[b]! - scores[a]! || a - b);
}
