import { Random } from '../src/base/random.ts';

/** Draws of the questions. The ends of the interval then move by about a hundredth of its length from seed to seed. */
const DRAWS = 2000;

/** The limits of a 95 % interval. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Values and their differences lie between −1 and 1. What is smaller than this is the rounding of equal values. */
export const ROUNDING = 1e-12;

/**
 * The mean of one value per question over random draws of as many questions, with replacement: from 2.5 to 97.5 % of the draws (the
 * percentile bootstrap). It says how far the mean depends on which questions were asked. The same seed draws the same questions, so that
 * intervals of two values can be compared. Null with fewer than two questions, and if all values are equal: draws of equal values say
 * nothing about other questions.
 */
export function bootstrapInterval(values: Float64Array, seed: number): Interval | null {
  return bootstrapIntervals([values], seed)[0]!;
}

/**
 * The intervals of several values of the same questions, from the same draws: as `bootstrapInterval` of each, and faster.
 *
 * @param columns for each value its sums over the searches of each question.
 * @param sizes searches of each question; default 1. Questions are drawn with all their searches, and the mean is over searches.
 */
export function bootstrapIntervals(
  columns: readonly Float64Array[],
  seed: number,
  sizes?: Float64Array,
): (Interval | null)[] {
  const questions = columns[0]?.length ?? 0;
  if (questions < 2) return columns.map(() => null);
  const random = new Random(seed, questions, 2);
  const means = columns.map(() => new Float64Array(DRAWS));
  const times = new Float64Array(questions);
  for (let draw = 0; draw < DRAWS; draw++) {
    times.fill(0);
    for (let i = 0; i < questions; i++) times[random.below(questions)]! += 1;
    const searches = sizes === undefined ? questions : drawnSum(times, sizes);
    for (const [c, values] of columns.entries()) means[c]![draw] = drawnSum(times, values) / searches;
  }
  return means.map((all) => {
    all.sort();
    const low = all[Math.floor(DRAWS * 0.025)]!;
    const high = all[Math.ceil(DRAWS * 0.975) - 1]!;
    return high - low < ROUNDING ? null : { low, high };
  });
}

function drawnSum(times: Float64Array, values: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < times.length; i++) sum += times[i]! * values[i]!;
  return sum;
}

export function meanOf(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Random assignments. A p-value near 0.05 then has a standard error of 0.002, and none is below 2 / (assignments + 1). */
const ASSIGNMENTS = 9999;
/** Up to this number of questions that differ, all assignments of signs are counted: at most 2^13. */
const EXACT_QUESTIONS = 13;

/**
 * The p-value of the paired randomisation test (Fisher's), two-sided: how often the mean difference of two systems would be at least as
 * large if each question's values had been given to the systems by chance. 1 without differences. As scipy.stats.permutation_test with
 * `permutation_type='samples'`: exact for few questions, else from random assignments, which depend on the seed only.
 *
 * @param differences for each question the second system's value minus the first's, summed over its queries.
 */
export function randomisationTest(differences: Float64Array, seed: number): number {
  // A question without a difference changes no sum.
  const changed = differences.filter((difference) => difference !== 0);
  if (changed.length === 0) return 1;
  const observed = changed.reduce((sum, value) => sum + value, 0);
  const exact = changed.length <= EXACT_QUESTIONS;
  const sums = exact ? allSums(changed) : randomSums(changed, seed);
  // Sums in another order differ in the last bits.
  const tolerance = 1e-12 * changed.reduce((sum, value) => sum + Math.abs(value), 0);
  let less = 0;
  let greater = 0;
  let count = 0;
  for (const sum of sums) {
    count += 1;
    if (sum <= observed + tolerance) less += 1;
    if (sum >= observed - tolerance) greater += 1;
  }
  // The observed assignment is one of all, but not of the random ones.
  const own = exact ? 0 : 1;
  return Math.min(1, (2 * (Math.min(less, greater) + own)) / (count + own));
}

function* allSums(values: Float64Array): Generator<number, void> {
  for (let signs = 0; signs < 2 ** values.length; signs++) {
    let sum = 0;
    for (const [i, value] of values.entries()) sum += (signs >>> i) & 1 ? -value : value;
    yield sum;
  }
}

function* randomSums(values: Float64Array, seed: number): Generator<number, void> {
  const random = new Random(seed, values.length, 3);
  for (let draw = 0; draw < ASSIGNMENTS; draw++) {
    let sum = 0;
    let bits = 0;
    for (let i = 0; i < values.length; i++) {
      if ((i & 31) === 0) bits = random.word();
      sum += bits & 1 ? -values[i]! : values[i]!;
      bits >>>= 1;
    }
    yield sum;
  }
}

type QuestionGroups = ReturnType<typeof groupByQuestion>;

/** Groups searches, by their ids, into questions: an agent's rollouts of a question are several searches of it. */
export function groupByQuestion(ids: readonly string[], questionOf: (id: string) => string) {
  const numbers = new Map<string, number>();
  const sizes: number[] = [];
  /** For each search the number of its question, from 0, in the order of the questions' first searches. */
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
