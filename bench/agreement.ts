import type { Answer } from './bench-engine.ts';

/** Scores nearer than this share of the query's largest are a tie: float32 sums of the baselines differ by less. */
export const NEAR_TIE = 1e-5;

/**
 * Share of the queries whose list is ours up to near-ties: at every rank the scores are a near-tie, and a row that only
 * one of the lists has is nearly tied with the last of that list.
 */
export function agreement(ours: Answer, theirs: Answer, count: number, k: number): number {
  let agreeing = 0;
  for (let query = 0; query < count; query++) if (sameUpToNearTies(ours, theirs, query * k, k)) agreeing++;
  return agreeing / count;
}

function sameUpToNearTies(ours: Answer, theirs: Answer, start: number, k: number): boolean {
  let largest = 0;
  for (let i = start; i < start + k; i++) largest = Math.max(largest, Math.abs(ours.scores[i]!));
  const tolerance = NEAR_TIE * largest;
  for (let i = start; i < start + k; i++) {
    // Negated, so that NaN or a list that is too short does not agree.
    if (!(Math.abs(ours.scores[i]! - theirs.scores[i]!) <= tolerance)) return false;
  }
  return onlyTiesMissing(ours, theirs, start, k, tolerance) && onlyTiesMissing(theirs, ours, start, k, tolerance);
}

/** Every row of `list` is in `other` or nearly tied with the last of `list`. */
function onlyTiesMissing(list: Answer, other: Answer, start: number, k: number, tolerance: number): boolean {
  const known = new Set(Array.from({ length: k }, (_, rank) => other.rows[start + rank]));
  const last = list.scores[start + k - 1]!;
  for (let i = start; i < start + k; i++) {
    if (!known.has(list.rows[i]) && list.scores[i]! - last > tolerance) return false;
  }
  return true;
}
