import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import type { QueryAnswer } from './load-plan.ts';

/**
 * Scores that differ by less than this share of the query's largest score are a tie. It is wider than in agreement.ts,
 * because each server embeds the query itself, and float32 encoders differ by about 10^-6 depending on padding.
 */
const SERVED_NEAR_TIE = 2e-5;

/**
 * The same between queries in float32 and in another precision. Vectors of length 1 with a cosine of c are √(2 − 2c) apart, and no score
 * differs by more; c is 0.9999 in bfloat16, which test/peers checks, and 0.99 in int8.
 */
const NEAR_TIES: Readonly<Record<Precision, number>> = {
  float32: SERVED_NEAR_TIE,
  float16: 2e-3,
  bfloat16: Math.sqrt(2 - 2 * 0.9999),
  int8: Math.sqrt(2 - 2 * 0.99),
};

/**
 * Whether two answers are the same up to ties: the scores at every rank are tied, and a passage that is in only one answer is
 * tied with the last passage of that answer.
 * @internal Exported for tests.
 */
export function sameAnswer(answer: QueryAnswer, other: QueryAnswer, nearTie = SERVED_NEAR_TIE): boolean {
  const k = answer.ids.length;
  if (other.ids.length !== k) return false;
  const tolerance = nearTie * Math.max(0, ...answer.scores.map(Math.abs));
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

/**
 * The least share of equal passages between precisions, whose tolerance is as wide as the scores of many passages lie apart. On average
 * 0.997 (bfloat16) and 0.965 (int8) of ten are equal with all-MiniLM-L6-v2; of three, int8 may keep one.
 */
const LEAST_SHARED: Readonly<Record<Precision, number>> = { float32: 1, float16: 0.5, bfloat16: 0.5, int8: 0.3 };

function sharedIds(answer: QueryAnswer, other: QueryAnswer): number {
  const known = new Set(other.ids);
  return answer.ids.filter((id) => known.has(id)).length;
}

/**
 * Compares each answer with the first answer to the same query in the same precision, from any server. The first one of a precision is
 * compared with those of the other precisions, with more tolerance.
 */
export class AnswerCheck {
  readonly #first = new Map<string, Map<Precision, QueryAnswer>>();

  /** The number of answers that differ from an earlier one to their query. `precision`: that of the queries. */
  wrong(answers: readonly QueryAnswer[], precision: Precision = 'float32'): number {
    let wrong = 0;
    for (const answer of answers) {
      const known = this.#first.get(answer.query) ?? new Map<Precision, QueryAnswer>();
      this.#first.set(answer.query, known);
      const own = known.get(precision);
      const isSame =
        own === undefined
          ? [...known].every(
              ([other, first]) =>
                sameAnswer(first, answer, Math.max(NEAR_TIES[other], NEAR_TIES[precision])) &&
                sharedIds(first, answer) >= Math.min(LEAST_SHARED[other], LEAST_SHARED[precision]) * answer.ids.length,
            )
          : sameAnswer(own, answer);
      if (!isSame) wrong++;
      else if (own === undefined) known.set(precision, answer);
    }
    return wrong;
  }
}
