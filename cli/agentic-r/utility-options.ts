import { usageError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import type { UtilityCounts, UtilityFileCounts } from '../../training/agentic-r/check-utilities.ts';
import { ROUND_PROBLEMS, type RoundProblem, type UtilityFiles } from '../../training/agentic-r/judged-rounds.ts';
import { openKeyedLines } from '../../training/agentic-r/keyed-lines.ts';
import * as option from '../options/option.ts';
import { lines } from '../output/lines.ts';

export const UTILITY_OPTIONS = {
  local: option.text('FILE', 'For check and construct: the local utilities of step 3-1.'),
  global: option.text('FILE', 'For check and construct: the global utilities of step 3-2.'),
} as const;

/** Opens the files of `--local` and `--global`, which the caller closes. @throws TrawlError USAGE without both; CORPUS_BAD_LINE, CORPUS_NOT_FOUND. */
export async function openUtilities(
  { local, global }: { readonly local: string | undefined; readonly global: string | undefined },
  signal: AbortSignal,
): Promise<UtilityFiles> {
  if (local === undefined && global === undefined) {
    throw usageError('Expected --local FILE, --global FILE or both: the utilities of steps 3-1 and 3-2.');
  }
  const ofLocal = local === undefined ? undefined : await openKeyedLines(local, signal);
  try {
    return { local: ofLocal, global: global === undefined ? undefined : await openKeyedLines(global, signal) };
  } catch (error) {
    await ofLocal?.close();
    throw error;
  }
}

const PROBLEMS: Readonly<Record<RoundProblem, string>> = {
  'no-candidates': 'without candidates: there is nothing to judge',
  'no-local': 'without local utilities',
  'no-global': 'without global utilities',
  'local-unusable': 'with unusable local utilities',
  'global-unusable': 'with unusable global utilities',
  'local-other-passages': "whose local utilities differ from the candidates'",
  'global-other-passages': "whose global utilities differ from the candidates'",
  'query-differs': 'whose global utilities are of another query',
};

/** Lines that say what was found in the files. */
export function utilityLines(counts: UtilityCounts): string[] {
  const { problems, noGlobalByDesign, historyDiffers, repeatedRounds } = counts;
  const byDesign =
    noGlobalByDesign === 0
      ? ''
      : ` (${formatCount(noGlobalByDesign)} because step 3-2 omits fifth rounds and those without exactly 20 candidates)`;
  return lines(
    `${formatNumberOf(counts.rounds, 'round')}, ${formatCount(counts.usable)} with usable utilities`,
    ...ROUND_PROBLEMS.map((problem) => {
      const reason = problem === 'no-global' ? byDesign : '';
      return problems[problem] > 0 && `  ${formatCount(problems[problem])} ${PROBLEMS[problem]}${reason}`;
    }),
    historyDiffers > 0 &&
      `  ${formatCount(historyDiffers)} whose history_queries in the global file lack queries, as after a resume of step 3-2`,
    repeatedRounds > 0 && `  ${formatCount(repeatedRounds)} twice in the candidates file; the first counts`,
    ...fileLines('local', counts.local),
    ...fileLines('global', counts.global),
    ...counts.examples.map((example) => `  for example ${example}`),
  );
}

function fileLines(name: string, counts: UtilityFileCounts | undefined): string[] {
  if (counts === undefined) return [];
  const { repeated, unknown } = counts;
  return lines(
    repeated > 0 &&
      `  ${formatCount(repeated)} lines of the ${name} file for a round that an earlier line has; the last counts`,
    unknown > 0 && `  ${formatCount(unknown)} rounds of the ${name} file that the candidates file does not have`,
  );
}
