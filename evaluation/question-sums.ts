import { ROUNDING } from './bootstrap.ts';

/** The questions of searches. An agent's rollouts of a question are several searches of it. */
export interface QuestionGroups {
  /** For each search the number of its question, from 0, in the order of the questions' first searches. */
  readonly questionOf: Int32Array;
  /** Searches of each question. */
  readonly sizes: Float64Array;
}

/** Groups searches, by their ids, into questions. `questionOf` gives the id of the question. */
export function groupByQuestion(ids: readonly string[], questionOf: (id: string) => string): QuestionGroups {
  const numbers = new Map<string, number>();
  const sizes: number[] = [];
  const places = Int32Array.from(ids, (id) => {
    const question = questionOf(id);
    const number = numbers.get(question) ?? numbers.size;
    numbers.set(question, number);
    sizes[number] = (sizes[number] ?? 0) + 1;
    return number;
  });
  return { questionOf: places, sizes: Float64Array.from(sizes) };
}

/** The sum of each question's values, between −1 and 1; `values` has one per search. A sum that is 0 but for rounding is 0. */
export function questionSums(values: ArrayLike<number>, { questionOf, sizes }: QuestionGroups): Float64Array {
  const sums = new Float64Array(sizes.length);
  for (const [search, question] of questionOf.entries()) sums[question]! += values[search]!;
  return sums.map((sum, question) => (Math.abs(sum) < ROUNDING * sizes[question]! ? 0 : sum));
}
