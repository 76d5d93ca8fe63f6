import type { QueryAnswer } from './load-plan.ts';

/**
 * Scores that differ by less than this share of the query's largest score are a tie. It is wider than in agreement.ts,
 * because each server embeds the query itself, and float32 encoders differ by about 10^-6 depending on padding.
 */
const SERVED_NEAR_TIE = 2e-5;

/**
 * Whether two answers are the same up to ties: the scores at every rank are tied, and a passage that is in only one answer is
 * tied with the last passage of that answer.
 */
export function sameAnswer(answer: QueryAnswer, other: QueryAnswer): boolean {
  const k = answer.ids.length;
  if (other.ids.length !== k) return false;
  const tolerance = SERVED_NEAR_TIE * Math.max(0, ...answer.scores.map(Math.abs));
  for (let rank = 0; rank < k; rank++) {
    // Negated, so that NaN does not agree.
    if (!(Math.abs(answer.scores[rank]! - other.scores[rank]!) <= tolerance)) return false;
  }
  return onlyTiesMissing(answer, other, tolerance) && onlyTiesMissing(other, answer, tolerance);
}

function onlyTiesMissing(list: QueryAnswer, other: QueryAnswer, tolerance: number): boolean {
  const known = new Set(other.ids);
  const last = list.scores.at(-1)!;
  return list.ids.every((id, rank) => known.has(id) || list.scores[rank]! - last <= tolerance);
}

/** Compares each answer with the first answer to the same query, from any server. */
export class AnswerCheck {
  readonly #first = new Map<string, QueryAnswer>();

  /** The number of answers that differ from the first answer to their query. */
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
