import { upperQuantile, upperTail } from '../../src/base/normal-tail.ts';
import { type Calibration, calibrateTail, negativeBinomialAtMost } from './calibrate-tail.ts';
import { type RelevantPlace, type RelevantPlaces, TAIL_SCORES } from './relevant-places.ts';

/** The smallest expectation of a tail: below it, the normal distribution says nothing about real scores. */
const LEAST_EXPECTED = 1e-8;

/**
 * How recall in the whole index follows from the pool. `bound`: as if no passage outside of the pool were better than a relevant one;
 * recall cannot be higher. `counts`: each sampled passage stands for as many as its share of the rest. `tail`: the sampled passages are
 * counted, and the others follow from how the scores of the sample fall off.
 */
export const ESTIMATORS = ['bound', 'counts', 'tail'] as const;
export type Estimator = (typeof ESTIMATORS)[number];

/** The passages outside of the chosen ones, and how many of them are sampled. */
interface SampledRest {
  readonly rest: number;
  readonly sampled: number;
}

/**
 * Estimates recall@k of each question: the mean, over its relevant passages, of the probability that fewer than k passages of the whole
 * index are before the passage.
 *
 * `tail` expects rest · P(score > s) passages of the rest before a relevant passage with the score s, where P is the upper tail of a
 * normal distribution, fitted to the TAIL_SCORES best scores of the sample for the question by least squares on their normal quantiles.
 * Scores of encoders are not quite normal, so the expectations are calibrated with the counts of the sample, over all questions
 * (`calibrateTail`). The number among the passages that are not in the sample is then negative binomial, given the count of the sample.
 */
export class RecallEstimator {
  readonly #places: RelevantPlaces;
  readonly #rest: SampledRest;
  /** Of each place, what its tail expects. */
  readonly #expected: readonly number[];
  /** Undefined if the sample is empty or the whole rest. */
  readonly #calibration: Calibration | undefined;

  constructor(places: RelevantPlaces, rest: SampledRest) {
    this.#places = places;
    this.#rest = rest;
    const tails = places.questions.map((scores) => tailOf(scores, rest.sampled));
    this.#expected = places.places.map((place) => expectedAhead(place, tails[place.question], rest));
    const counts = places.places.flatMap(({ ahead, sampleAhead }, i) =>
      ahead === Number.POSITIVE_INFINITY ? [] : [{ expected: this.#expected[i]!, sampleAhead }],
    );
    const isPart = rest.sampled > 0 && rest.sampled < rest.rest;
    this.#calibration = isPart ? calibrateTail(counts, rest.sampled / rest.rest, places.longestCount) : undefined;
  }

  /** One value for each question. */
  recalls(estimator: Estimator, k: number): Float64Array {
    const found = new Float64Array(this.#places.questions.length);
    const relevant = new Float64Array(found.length);
    for (const [i, place] of this.#places.places.entries()) {
      found[place.question]! += this.#foundShare(place, this.#expected[i]!, estimator, k);
      relevant[place.question] = place.ofRelevant;
    }
    // Divided once: the same passages give the same recall as with the present encoder, bit for bit.
    return found.map((sum, question) => (sum === 0 ? 0 : sum / relevant[question]!));
  }

  #foundShare({ ahead, sampleAhead }: RelevantPlace, expected: number, estimator: Estimator, k: number): number {
    const { rest, sampled } = this.#rest;
    const free = k - 1 - ahead - sampleAhead;
    if (free < 0) return 0;
    if (estimator === 'bound' || this.#calibration === undefined) return 1;
    if (estimator === 'counts') return ((rest - sampled) * sampleAhead) / sampled <= free ? 1 : 0;
    const { factor, exponent, shape } = this.#calibration;
    const mean = factor * expected ** exponent;
    const share = sampled / rest;
    const others = ((1 - share) * mean * (shape + sampleAhead)) / (shape + share * mean);
    return negativeBinomialAtMost(free, others, shape + sampleAhead);
  }
}

/** Mean and deviation of a normal distribution with the best scores of the sample; undefined if they have no slope. */
interface Tail {
  readonly mean: number;
  readonly deviation: number;
}

function expectedAhead({ score, sampleAhead }: RelevantPlace, tail: Tail | undefined, rest: SampledRest): number {
  if (tail === undefined) return (rest.rest * (sampleAhead + 0.5)) / (rest.sampled + 1);
  return Math.max(LEAST_EXPECTED, rest.rest * upperTail((score - tail.mean) / tail.deviation));
}

function tailOf(scores: readonly number[], sampled: number): Tail | undefined {
  const count = Math.min(TAIL_SCORES, scores.length);
  if (count < 3) return undefined;
  const quantiles = quantilesOf(count, sampled);
  const meanQuantile = mean(quantiles);
  const meanScore = mean(scores.slice(0, count));
  let products = 0;
  let squares = 0;
  for (const [i, quantile] of quantiles.entries()) {
    products += (quantile - meanQuantile) * (scores[i]! - meanScore);
    squares += (quantile - meanQuantile) ** 2;
  }
  const deviation = products / squares;
  return deviation > 0 ? { mean: meanScore - deviation * meanQuantile, deviation } : undefined;
}

let lastQuantiles: { readonly count: number; readonly sampled: number; readonly values: readonly number[] } | undefined;

/** The quantiles of the `count` best of `sampled` draws: the i-th is exceeded with probability (i + ½) / sampled. */
function quantilesOf(count: number, sampled: number): readonly number[] {
  if (lastQuantiles?.count !== count || lastQuantiles.sampled !== sampled) {
    const values = Array.from({ length: count }, (_, i) => upperQuantile((i + 0.5) / sampled));
    lastQuantiles = { count, sampled, values };
  }
  return lastQuantiles.values;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
