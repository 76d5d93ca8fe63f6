import type { Answer } from './flat-engine.ts';

/** Scores that differ by less than this share of the query's largest score are a tie: the baselines sum in float32. */
const NEAR_TIE = 1e-5;

/**
 * The share of queries with the same list up to near-ties: the scores at every rank are nearly tied, and a row in only one
 * of the lists is nearly tied with the last row of that list.
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
    // Negated, so that NaN (a list that is too short) does not agree.
    if (!(Math.abs(ours.scores[i]! - theirs.scores[i]!) <= tolerance)) return false;
  }
  return onlyTiesMissing(ours, theirs, start, k, tolerance) && onlyTiesMissing(theirs, ours, start, k, tolerance);
}

/** Whether every row of `list` is in `other` or nearly tied with the last row of `list`. */
function onlyTiesMissing(list: Answer, other: Answer, start: number, k: number, tolerance: number): boolean {
  const known = new Set(Array.from({ length: k }, (_, rank) => other.rows[start + rank]));
  const last = list.scores[start + k - 1]!;
  for (let i = start; i < start + k; i++) {
    if (!known.has(list.rows[i]) && list.scores[i]! - last > tolerance) return false;
  }
  return true;
}
