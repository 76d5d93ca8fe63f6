import { usageError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import type { UtilityCounts, UtilityFileCounts } from '../../training/agentic-r/check-utilities.ts';
import { ROUND_PROBLEMS, type RoundProblem, type UtilityFiles } from '../../training/agentic-r/judged-rounds.ts';
import { KeyedLines } from '../../training/agentic-r/keyed-lines.ts';
import { utilityKey } from '../../training/agentic-r/utilities.ts';

export const UTILITY_OPTIONS = {
  local: { type: 'string', value: 'FILE', help: 'For check and construct: the local utilities of step 3-1.' },
  global: { type: 'string', value: 'FILE', help: 'For check and construct: the global utilities of step 3-2.' },
} as const;

interface OpenUtilities {
  readonly files: UtilityFiles;
  close(): Promise<void>;
}

/** Opens the files of `--local` and `--global`. @throws TrawlError USAGE without both; CORPUS_BAD_LINE, CORPUS_NOT_FOUND. */
export async function openUtilities(
  { local, global }: { readonly local: string | undefined; readonly global: string | undefined },
  signal: AbortSignal,
): Promise<OpenUtilities> {
  if (local === undefined && global === undefined) {
    throw usageError('Expected --local FILE, --global FILE or both: the utilities of steps 3-1 and 3-2.');
  }
  const opened: KeyedLines[] = [];
  const close = async (): Promise<void> => {
    for (const file of opened) await file.close();
  };
  const open = async (path: string | undefined): Promise<KeyedLines | undefined> => {
    if (path === undefined) return undefined;
    const file = await KeyedLines.open(path, utilityKey, signal);
    opened.push(file);
    return file;
  };
  try {
    return { files: { local: await open(local), global: await open(global) }, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const PROBLEMS: Readonly<Record<RoundProblem, string>> = {
  'no-candidates': 'without candidates: there is nothing to judge',
  'no-local': 'without local utilities',
  'no-global': 'without global utilities',
  'local-unusable': 'with unusable local utilities',
  'global-unusable': 'with unusable global utilities',
  'local-other-passages': 'whose local utilities are not those of the candidates',
  'global-other-passages': 'whose global utilities are not those of the candidates',
  'query-differs': 'whose global utilities are of another query',
};

/** Lines that say what was found in the files. */
export function utilityLines(counts: UtilityCounts): string[] {
  const lines = [`${formatNumberOf(counts.rounds, 'round')}, ${formatCount(counts.usable)} with usable utilities`];
  for (const problem of ROUND_PROBLEMS) {
    if (counts.problems[problem] === 0) continue;
    const byDesign =
      problem === 'no-global' && counts.noGlobalByDesign > 0
        ? ` (${formatCount(counts.noGlobalByDesign)} because step 3-2 omits fifth rounds and those without exactly 20 candidates)`
        : '';
    lines.push(`  ${formatCount(counts.problems[problem])} ${PROBLEMS[problem]}${byDesign}`);
  }
  if (counts.historyDiffers > 0) {
    lines.push(
      `  ${formatCount(counts.historyDiffers)} whose history_queries in the global file lack queries, as after a resume of step 3-2`,
    );
  }
  if (counts.repeatedRounds > 0)
    lines.push(`  ${formatCount(counts.repeatedRounds)} twice in the candidates file; the first counts`);
  lines.push(...fileLines('local', counts.local), ...fileLines('global', counts.global));
  return [...lines, ...counts.examples.map((example) => `  for example ${example}`)];
}

function fileLines(name: string, counts: UtilityFileCounts | undefined): string[] {
  if (counts === undefined) return [];
  return [
    ...(counts.repeated > 0
      ? [
          `  ${formatCount(counts.repeated)} lines of the ${name} file for a round that an earlier line has; the last counts`,
        ]
      : []),
    ...(counts.unknown > 0
      ? [`  ${formatCount(counts.unknown)} rounds of the ${name} file that the candidates file does not have`]
      : []),
  ];
}
