import { Random } from '../src/base/random.ts';

/** Draws of the questions. The ends of the interval then move by about a hundredth of its length from seed to seed. */
const DRAWS = 2000;

/** Limits of a 95 % interval. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Values and their differences lie between −1 and 1: what is smaller than this is the rounding of equal values. */
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
 * @param columns of each value the sums over the searches of a question.
 * @param sizes searches of each question; default 1. Questions are drawn with all their searches, and the mean is that over searches.
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
