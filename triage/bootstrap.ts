import { Random } from '../src/random.ts';

/** Draws of the questions. The ends of the interval then move by about a hundredth of its length from seed to seed. */
const DRAWS = 2000;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * The mean of one value per question over random draws of as many questions, with replacement: from 2.5 to 97.5 % of the draws. It says
 * how far the mean depends on which questions were asked. The same seed draws the same questions, so that intervals of two values can be
 * compared.
 */
export function bootstrapInterval(values: Float64Array, seed: number): Interval {
  const random = new Random(seed, values.length, 2);
  const means = new Float64Array(DRAWS);
  for (let draw = 0; draw < DRAWS; draw++) {
    let sum = 0;
    for (let i = 0; i < values.length; i++) sum += values[random.below(values.length)]!;
    means[draw] = sum / values.length;
  }
  means.sort();
  return { low: means[Math.floor(DRAWS * 0.025)]!, high: means[Math.ceil(DRAWS * 0.975) - 1]! };
}

export function meanOf(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
