import type { QueryAnswer } from './load-plan.ts';

/**
 * Scores nearer than this share of the query's largest are a tie. Wider than for equal vectors (agreement.ts): each server
 * embeds the query itself, and float32 encoders differ by some 10^-6 with the padding.
 */
export const SERVED_NEAR_TIE = 2e-5;

/** Whether two answers to a query are the same but for ties: equal scores at every rank, and rows in one alone are tied with its last. */
export function sameAnswer(ours: QueryAnswer, theirs: QueryAnswer): boolean {
  const k = ours.ids.length;
  if (theirs.ids.length !== k) return false;
  const tolerance = SERVED_NEAR_TIE * Math.max(0, ...ours.scores.map(Math.abs));
  for (let rank = 0; rank < k; rank++) {
    // Negated, so that NaN does not agree.
    if (!(Math.abs(ours.scores[rank]! - theirs.scores[rank]!) <= tolerance)) return false;
  }
  return onlyTiesMissing(ours, theirs, tolerance) && onlyTiesMissing(theirs, ours, tolerance);
}

function onlyTiesMissing(list: QueryAnswer, other: QueryAnswer, tolerance: number): boolean {
  const known = new Set(other.ids);
  const last = list.scores.at(-1)!;
  return list.ids.every((id, rank) => known.has(id) || list.scores[rank]! - last <= tolerance);
}

/** What each query got first, and how many later answers, of whichever server, were different. */
export class AnswerCheck {
  readonly #first = new Map<string, QueryAnswer>();

  /** The number of answers that differ from the first ones to their queries. */
  wrong(answers: readonly QueryAnswer[]): number {
    let wrong = 0;
    for (const answer of answers) {
      const first = this.#first.get(answer.query);
      if (first === undefined) this.#first.set(answer.query, answer);
      else if (!sameAnswer(first, answer)) wrong++;
    }
    return wrong;
  }
}
