import { Random } from '../src/random.ts';

/** Draws of the questions. The ends of the interval then move by about a hundredth of its length from seed to seed. */
const DRAWS = 2000;

/** Limits of a 95 % interval. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * The mean of one value per question over random draws of as many questions, with replacement: from 2.5 to 97.5 % of the draws (the
 * percentile bootstrap). It says how far the mean depends on which questions were asked. The same seed draws the same questions, so that
 * intervals of two values can be compared.
 */
export function bootstrapInterval(values: Float64Array, seed: number): Interval {
  return bootstrapIntervals([values], seed)[0]!;
}

/** The intervals of several values of the same questions, from the same draws: as `bootstrapInterval` of each, and faster. */
export function bootstrapIntervals(columns: readonly Float64Array[], seed: number): Interval[] {
  const questions = columns[0]?.length ?? 0;
  const random = new Random(seed, questions, 2);
  const means = columns.map(() => new Float64Array(DRAWS));
  const times = new Float64Array(questions);
  for (let draw = 0; draw < DRAWS; draw++) {
    times.fill(0);
    for (let i = 0; i < questions; i++) times[random.below(questions)]! += 1;
    for (const [c, values] of columns.entries()) {
      let sum = 0;
      for (let i = 0; i < questions; i++) sum += times[i]! * values[i]!;
      means[c]![draw] = sum / questions;
    }
  }
  return means.map((all) => {
    all.sort();
    return { low: all[Math.floor(DRAWS * 0.025)]!, high: all[Math.ceil(DRAWS * 0.975) - 1]! };
  });
}

export function meanOf(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
