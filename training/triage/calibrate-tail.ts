/**
 * How the expectations of the tails correspond to numbers: a passage with the expectation e has a negative binomial number of passages of
 * the rest before it, with the mean `factor` · e^`exponent` and the variance mean + mean² / `shape`.
 */
export interface Calibration {
  readonly factor: number;
  readonly exponent: number;
  readonly shape: number;
}

/** Widths of the normal priors of log factor, exponent and log shape around 0, 1 and 0. With few counts the tails are left as they are. */
const PRIOR = { start: [0, 1, 0], widths: [Number.POSITIVE_INFINITY, 1, 1] } as const;
const MOST_STEPS = 2000;
const SMALLEST_STEP = 1e-3;
const MOST_LOG = 25;

/**
 * The calibration under which the counts of the sample are most probable (maximum a posteriori), found by a compass search.
 *
 * @param counts for each relevant passage how many of the rest its tail expects before it, > 0, and how many of the sample are
 * @param share part of the rest that is in the sample, > 0
 * @param most counts of this size mean «this many or more»
 */
export function calibrateTail(
  counts: readonly { readonly expected: number; readonly sampleAhead: number }[],
  share: number,
  most: number,
): Calibration {
  const logs = counts.map(({ expected, sampleAhead }) => ({
    log: Math.log(expected),
    count: Math.min(sampleAhead, most),
  }));
  const cost = (point: readonly number[]): number => {
    const [logFactor, exponent, logShape] = point as [number, number, number];
    if (Math.abs(logShape) > MOST_LOG / 3 || Math.abs(logFactor) > MOST_LOG) return Number.POSITIVE_INFINITY;
    const shape = Math.exp(logShape);
    let sum = 0;
    for (const { log, count } of logs) {
      const mean = share * Math.exp(Math.min(MOST_LOG, logFactor + exponent * log));
      sum -= Math.log(Math.max(Number.MIN_VALUE, countProbability(count, mean, shape, most)));
    }
    for (const [i, value] of point.entries()) sum += ((value - PRIOR.start[i]!) / PRIOR.widths[i]!) ** 2 / 2;
    return sum;
  };
  const [logFactor, exponent, logShape] = compassSearch(cost, PRIOR.start) as [number, number, number];
  return { factor: Math.exp(logFactor), exponent, shape: Math.exp(logShape) };
}

/** Probability of a count, where `most` stands for this many or more. */
function countProbability(count: number, mean: number, shape: number, most: number): number {
  if (count >= most) return 1 - negativeBinomialAtMost(most - 1, mean, shape);
  let probability = noneProbability(mean, shape);
  for (let i = 1; i <= count; i++) probability *= ratio(i, mean, shape);
  return probability;
}

export function negativeBinomialAtMost(most: number, mean: number, shape: number): number {
  if (most < 0) return 0;
  let term = noneProbability(mean, shape);
  let sum = term;
  for (let i = 1; i <= most; i++) {
    term *= ratio(i, mean, shape);
    sum += term;
  }
  return Math.min(1, sum);
}

function noneProbability(mean: number, shape: number): number {
  return Math.exp(-shape * Math.log1p(mean / shape));
}

/** P(i) / P(i − 1). */
function ratio(i: number, mean: number, shape: number): number {
  return ((i - 1 + shape) / i) * (mean / (shape + mean));
}

/** Goes along the axes to smaller costs, and halves the step where there are none. */
function compassSearch(cost: (point: readonly number[]) => number, start: readonly number[]): readonly number[] {
  let point = start;
  let best = cost(point);
  let step = 1;
  for (let steps = 0; step >= SMALLEST_STEP && steps < MOST_STEPS; steps++) {
    let moved = false;
    for (let axis = 0; axis < start.length; axis++) {
      for (const direction of [step, -step]) {
        const next = point.map((value, i) => (i === axis ? value + direction : value));
        const found = cost(next);
        if (found < best) {
          point = next;
          best = found;
          moved = true;
        }
      }
    }
    if (!moved) step /= 2;
  }
  return point;
}
