import { Random } from '../src/base/random.ts';

/** Random assignments. A p-value near 0.05 then has a standard error of 0.002, and none is below 2 / (draws + 1). */
const DRAWS = 9999;
/** Up to this number of questions that differ, all assignments of signs are counted: at most 2^13. */
const EXACT_QUESTIONS = 13;

/**
 * The p-value of the paired randomisation test (Fisher's), two-sided: how often the mean difference of two systems would be at least as
 * large if each question's values had been given to the systems by chance. `differences` has one value per question, second system
 * minus first; the sum over its queries, where it has several. As scipy.stats.permutation_test computes it with `permutation_type='samples'`: exactly for few questions, else from
 * random assignments, of which the same seed draws the same. 1 without differences.
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
  for (let draw = 0; draw < DRAWS; draw++) {
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
