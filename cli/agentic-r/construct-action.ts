import { usageError } from '../../src/base/errors.ts';
import { formatNumberOf } from '../../src/base/format.ts';
import { closeAll } from '../../src/base/system/close-all.ts';
import { PartialFile } from '../../src/base/system/partial-file.ts';
import {
  AGENTIC_R_RULE,
  type ConstructCounts,
  constructRows,
  RULE_DROPS,
  type RuleDrop,
} from '../../training/agentic-r/construct-rows.ts';
import { EXCLUSION_RULES, type ExclusionRule, readKnownPassages } from '../../training/agentic-r/exclusions.ts';
import { numberFrom } from '../options/numbers.ts';
import * as option from '../options/option.ts';
import { EXIT } from '../program/command.ts';
import { DATASET_OPTION, datasetOf, defineAction, OUT_OPTIONS, OVERWRITE_OPTION, requiredOut } from './action.ts';
import { openUtilities, UTILITY_OPTIONS, utilityLines } from './utility-options.ts';

/** Step 4: training rows of candidates and their utilities. */
export const constructAction = defineAction({
  arguments: ['candidates'],
  options: {
    ...OUT_OPTIONS,
    overwrite: OVERWRITE_OPTION,
    ...UTILITY_OPTIONS,
    dataset: DATASET_OPTION,
    threshold: option.text(
      { value: 'NUMBER', default: String(AGENTIC_R_RULE.threshold) },
      'For construct: lowest local utility of a positive, from 0 to 1.',
    ),
    positives: option.integer(
      { min: 1, max: 1000, default: AGENTIC_R_RULE.positives },
      'For construct: most rows of a round, each with another positive.',
    ),
    'group-size': option.integer(
      { min: 2, max: 1000, default: AGENTIC_R_RULE.groupSize },
      'For construct: passages of a row, the positive included. A round with fewer negatives gives no row.',
    ),
    seed: option.integer({ min: 0, default: 0 }, 'For construct: seed of the draws of negatives.'),
    passages: option.text(
      'FILE',
      'For construct: passages.jsonl of the hand-over, which --exclude-duplicates and --ids corpus need.',
    ),
    ids: option.choice(
      { choices: ['rows', 'corpus'], default: 'rows' },
      'For construct: passage_ids as row numbers, as in Agentic-R, or as the ids of the corpus.',
    ),
    'exclude-correct': option.flag(
      'For construct: no negatives with em 1. Agentic-R keeps those with a lower local utility.',
    ),
    'exclude-duplicates': option.flag(
      'For construct: no negatives with the text of a positive; titles, case, white space and quotation marks do not count. With --exclude-siblings, also those with the text of a positive of another round.',
    ),
    'exclude-siblings': option.flag(
      'For construct: no negatives that are positives of another round of the same question.',
    ),
    'full-history': option.flag(
      'For construct: history_queries from the candidates file. The files of step 3-2 lack queries after a resume.',
    ),
  },
  async run({ options, positionals, signal, out: print }) {
    const [candidates] = positionals;
    const out = requiredOut(options.out, 'construct', 'T/retriever_training_data.jsonl');
    const threshold = numberFrom('threshold', options.threshold, { max: 1 });
    const needsTexts = options['exclude-duplicates'] || options.ids === 'corpus';
    if (needsTexts !== (options.passages !== undefined)) {
      const problem = needsTexts
        ? '--exclude-duplicates and --ids corpus need --passages FILE, the passages.jsonl of trawl agentic-r hand-over.'
        : '--passages has no effect without --exclude-duplicates or --ids corpus.';
      throw usageError(problem);
    }
    const files = await openUtilities(options, signal);
    let output: PartialFile | undefined;
    try {
      const passages = options.passages === undefined ? undefined : await readKnownPassages(options.passages, signal);
      output = await PartialFile.create(out, options.overwrite);
      const counts = await constructRows(
        candidates!,
        files,
        {
          dataset: datasetOf(options.dataset, candidates!),
          threshold,
          positives: options.positives,
          groupSize: options['group-size'],
          seed: options.seed,
          excludeCorrect: options['exclude-correct'],
          excludeSiblings: options['exclude-siblings'],
          duplicatesBy: options['exclude-duplicates'] ? passages : undefined,
          corpusIds: options.ids === 'corpus' ? passages : undefined,
          fullHistory: options['full-history'],
        },
        { write: (line) => output!.write(line), signal },
      );
      await output.publish();
      print(options.json ? JSON.stringify({ out, ...counts }) : textReport(out, counts));
      return EXIT.ok;
    } finally {
      await output?.discard();
      await closeAll(files.local, files.global);
    }
  },
});

const DROPPED: Readonly<Record<RuleDrop, string>> = {
  'not-correct': 'no candidate has em 1',
  'below-threshold': 'the best candidate is below the threshold',
  'too-few-negatives': 'too few negatives',
};

const EXCLUDED: Readonly<Record<ExclusionRule, string>> = {
  correct: 'em 1',
  duplicate: 'text of a positive',
  sibling: 'positive of another round, or a copy of it',
};

function textReport(out: string, counts: ConstructCounts): string {
  return [
    `${out}: ${formatNumberOf(counts.rows, 'row')} of ${formatNumberOf(counts.rounds, 'round')}`,
    ...utilityLines(counts.utilities),
    ...RULE_DROPS.filter((drop) => counts.dropped[drop] > 0).map(
      (drop) => `  dropped: ${formatNumberOf(counts.dropped[drop], 'round')}, ${DROPPED[drop]}`,
    ),
    ...EXCLUSION_RULES.filter((rule) => counts.excluded[rule] > 0).map(
      (rule) => `  excluded: ${formatNumberOf(counts.excluded[rule], 'negative')}, ${EXCLUDED[rule]}`,
    ),
    ...(counts.unusedPositives > 0 ? [`  ${formatNumberOf(counts.unusedPositives, 'positive')} in no row`] : []),
    `  ${formatNumberOf(counts.correctNegatives, 'negative')} with em 1`,
  ].join('\n');
}
