import { TrawlError } from '../../src/base/errors.ts';
import { defined } from '../../src/base/objects.ts';

/** What a server can do to its answers on purpose, in the order in which replies name it. */
export const PERTURBATIONS = ['drop-gold', 'distractors', 'delay', 'fail'] as const;
export type PerturbationName = (typeof PERTURBATIONS)[number];

export interface PerturbationSettings {
  /** The share of queries (`drop-gold`, `distractors`) and of requests (`delay`, `fail`) that are affected, from 0 to 1. */
  readonly rates: Readonly<Record<PerturbationName, number>>;
  /** A whole number from 0. Another seed affects other queries. */
  readonly seed: number;
  /** Distractors in an affected answer, ≥ 1; at most as many as hits were asked for. */
  readonly distractors: number;
  /** How long an affected request is held back, in milliseconds, ≥ 1. */
  readonly delayMs: number;
}

export const DEFAULT_DISTRACTORS = 1;
export const DEFAULT_DELAY_MS = 1000;
/** Longer than any client waits. */
export const MAX_DELAY_MS = 600_000;

/** @throws TrawlError CONFIG_INVALID. */
export function perturbationSettings(
  rates: Partial<PerturbationSettings['rates']>,
  {
    seed = 0,
    distractors = DEFAULT_DISTRACTORS,
    delayMs = DEFAULT_DELAY_MS,
  }: Partial<Omit<PerturbationSettings, 'rates'>> = {},
): PerturbationSettings {
  for (const [name, rate] of Object.entries(defined(rates))) {
    if (!(rate >= 0 && rate <= 1)) throw invalid(`the rate of ${name}`, rate, 'a number from 0 to 1');
  }
  const isCount = (value: number, min: number): boolean => Number.isSafeInteger(value) && value >= min;
  if (!isCount(seed, 0)) throw invalid('the seed', seed, 'a whole number from 0');
  if (!isCount(distractors, 1)) throw invalid('the number of distractors', distractors, 'a whole number from 1');
  if (!isCount(delayMs, 1) || delayMs > MAX_DELAY_MS) {
    throw invalid('the delay', delayMs, `whole milliseconds from 1 to ${MAX_DELAY_MS}`);
  }
  return {
    rates: { 'drop-gold': 0, distractors: 0, delay: 0, fail: 0, ...defined(rates) },
    seed,
    distractors,
    delayMs,
  };
}

function invalid(what: string, value: number, expected: string): TrawlError {
  return new TrawlError('CONFIG_INVALID', `Perturbation: ${what} is ${value}; expected ${expected}.`);
}

/** The settings in words, for the start of a server: `drop-gold 0.1, distractors 0.2 (3 passages), delay 0.05 (500 ms), seed 7`. */
export function settingsText({ rates, seed, distractors, delayMs }: PerturbationSettings): string {
  const amounts: Partial<Record<PerturbationName, string>> = {
    distractors: ` (${distractors} ${distractors === 1 ? 'passage' : 'passages'})`,
    delay: ` (${delayMs} ms)`,
  };
  const used = PERTURBATIONS.filter((name) => rates[name] > 0);
  return [...used.map((name) => `${name} ${rates[name]}${amounts[name] ?? ''}`), `seed ${seed}`].join(', ');
}
