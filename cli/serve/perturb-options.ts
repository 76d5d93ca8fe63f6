import { readQuestionSet } from '../../evaluation/question-set.ts';
import { withoutLabels } from '../../evaluation/read-questions.ts';
import { usageError } from '../../src/base/errors.ts';
import type { OptionTable, OptionValues } from '../../src/base/options/option-spec.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { answerRule } from '../../training/mining/answer-rule.ts';
import type { GoldPassages } from '../../training/perturbation/request-perturbation.ts';
import {
  DEFAULT_DELAY_MS,
  DEFAULT_DISTRACTORS,
  MAX_DELAY_MS,
  PERTURBATIONS,
  type PerturbationSettings,
} from '../../training/perturbation/settings.ts';
import { goldQuestions } from '../../training/replay/gold-questions.ts';
import { namedNumbers } from '../options/numbers.ts';
import * as option from '../options/option.ts';

const EXAMPLE = 'drop-gold=0.1,distractors=0.2,delay=0.05,fail=0.01';

/** Options of `trawl serve` that perturb its answers (docs/perturbation.md). */
export const PERTURB_OPTIONS = {
  perturb: option.text(
    'NAME=RATE,…',
    `Change, delay and fail searches on purpose, to train and test agents with a retriever that is not perfect: ${EXAMPLE}. A rate is the share of queries that lose their gold passages (drop-gold) or get distractors, and of requests that are held back (delay) or answered with 503 (fail). Which ones follows from --perturb-seed and their texts. Every reply says so in the header x-trawl-perturbed (docs/perturbation.md).`,
  ),
  'perturb-seed': option.integer(
    { min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 },
    'With --perturb: the seed. The same seed affects the same queries again, another one affects others.',
  ),
  'perturb-gold': option.text(
    'QUESTIONS',
    'With --perturb drop-gold: JSONL of questions with gold_ids, golden_answers or both (docs/training.md). A passage is gold if its id is among the gold_ids or if it has a golden answer by the rule of trawl mine. Gold passages are not used as distractors either.',
  ),
  'perturb-distractors': option.integer(
    { min: 1, max: 1000, default: DEFAULT_DISTRACTORS },
    'With --perturb distractors: passages of the index that are mixed into an affected answer, at most as many as it has passages.',
  ),
  'perturb-delay-ms': option.integer(
    { min: 1, max: MAX_DELAY_MS, default: DEFAULT_DELAY_MS },
    'With --perturb delay: how long an affected request is held back before its search, in milliseconds.',
  ),
} as const satisfies OptionTable;

type PerturbOptions = OptionValues<typeof PERTURB_OPTIONS>;
type Rates = Partial<PerturbationSettings['rates']>;

/** The rates of `--perturb` or of an address. @throws TrawlError USAGE. */
export function perturbRates(text: string): Rates {
  return namedNumbers('perturb', text, { names: PERTURBATIONS, max: 1, example: EXAMPLE });
}

/**
 * Checks that the options fit each other.
 *
 * @param others the rates of further addresses.
 * @throws TrawlError USAGE.
 */
export function checkPerturbOptions(
  { perturb, 'perturb-gold': gold, replay }: PerturbOptions & { readonly replay: string | undefined },
  given: ReadonlySet<string>,
  others: readonly Rates[],
): void {
  const all = [...(perturb === undefined ? [] : [perturbRates(perturb)]), ...others];
  const useless = [...given].find((name) => name.startsWith('perturb-'));
  if (all.length === 0 && useless !== undefined) {
    throw usageError(`--${useless} has no effect without --perturb, such as --perturb ${EXAMPLE}.`);
  }
  if (gold === undefined && all.some((rates) => (rates['drop-gold'] ?? 0) > 0)) {
    throw usageError(
      '--perturb drop-gold needs --perturb-gold QUESTIONS: without it the server does not know which passages are gold.',
    );
  }
  if (replay !== undefined && all.some((rates) => (rates.distractors ?? 0) > 0)) {
    throw usageError(
      '--perturb distractors cannot be combined with --replay: a bundle has no other passages than the recorded ones.',
    );
  }
}

/**
 * The gold passages of a file of questions.
 *
 * @throws TrawlError CORPUS_BAD_LINE or CORPUS_NOT_FOUND; USAGE if no question has gold passages.
 */
export async function readGoldPassages(file: string): Promise<GoldPassages> {
  const questions = (await readQuestionSet(file)).questions;
  const usable = questions.filter(({ goldIds = [], goldenAnswers = [] }) => goldIds.length + goldenAnswers.length > 0);
  // A question with labels alone is known, and none of its passages is gold.
  if (
    usable.every(({ goldIds = [], goldenAnswers = [] }) => goldIds.length + withoutLabels(goldenAnswers).length === 0)
  ) {
    throw usageError(
      `--perturb-gold ${file} has ${questions.length} questions, and none has gold_ids, or golden_answers that passages can be searched for. Add one of them.`,
    );
  }
  const known = goldQuestions(usable, (answers) => answerRule(answers).matches);
  return {
    of(query) {
      const gold = known.of(query);
      if (gold === undefined) return undefined;
      return (document) => {
        const { id, contents } = documentFields(document);
        return (id !== undefined && gold.ids.has(id)) || (gold.hasAnswer?.(contents) ?? false);
      };
    },
  };
}
