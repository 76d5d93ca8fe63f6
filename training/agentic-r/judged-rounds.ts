import type { CandidateRound } from './candidate-item.ts';
import type { KeyedLines } from './keyed-lines.ts';
import { type ReadCandidates, readCandidates } from './read-candidates.ts';
import { roundKey } from './round-key.ts';
import { type GlobalRound, globalRound, localUtilities, UnusableRound, type Utilities } from './utilities.ts';

/** Why a round has no usable utilities. `no-candidates`: there is nothing to judge, because its query could not be searched or found nothing. */
export const ROUND_PROBLEMS = [
  'no-candidates',
  'no-local',
  'no-global',
  'local-unusable',
  'global-unusable',
  'local-other-passages',
  'global-other-passages',
  'query-differs',
] as const;
export type RoundProblem = (typeof ROUND_PROBLEMS)[number];

/** The utilities of a round's candidates, from either file or both. */
export interface JudgedRound {
  readonly item: ReadCandidates;
  readonly round: CandidateRound;
  /** The agent's earlier queries, oldest first, from the candidates file. */
  readonly history: readonly string[];
  /** Undefined without a file of local utilities, or if it has a problem. */
  readonly local: Utilities | undefined;
  readonly global: GlobalRound | undefined;
  /** The first problem; undefined if the utilities of all files can be used. */
  readonly problem: RoundProblem | undefined;
  /** The problem in words, for the report. */
  readonly detail: string | undefined;
  /** The history of step 3-2 differs from the candidates file: its resume loses queries. */
  readonly historyDiffers: boolean;
}

export interface UtilityFiles {
  readonly local: KeyedLines | undefined;
  readonly global: KeyedLines | undefined;
}

/**
 * Joins the rounds of a candidates file with their utilities, in the order of the candidates file.
 *
 * @throws TrawlError CORPUS_BAD_LINE for a line that is not of its format.
 */
export async function* judgedRounds(
  candidates: string,
  files: UtilityFiles,
  signal?: AbortSignal,
): AsyncGenerator<JudgedRound, void> {
  for await (const item of readCandidates(candidates, { signal })) {
    const history: string[] = [];
    for (const round of item.trajectory) {
      yield await judge(item, round, [...history], files);
      history.push(round.current_query);
    }
  }
}

async function judge(
  item: ReadCandidates,
  round: CandidateRound,
  history: readonly string[],
  files: UtilityFiles,
): Promise<JudgedRound> {
  const key = roundKey(item.id, round.round_index);
  const rows = round.candidate_passage_ids;
  const base = { item, round, history, local: undefined, global: undefined, detail: undefined, historyDiffers: false };
  if (rows.length === 0) return { ...base, problem: 'no-candidates' };
  const localItem = await files.local?.read(key);
  const globalItem = await files.global?.read(key);
  if (files.local !== undefined && localItem === undefined) return { ...base, problem: 'no-local' };
  if (files.global !== undefined && globalItem === undefined) return { ...base, problem: 'no-global' };
  const local = usable(() => (localItem === undefined ? undefined : localUtilities(localItem)));
  if ('unusable' in local)
    return { ...base, problem: 'local-unusable', detail: `${localItem!.place}: ${local.unusable}` };
  const global = usable(() => (globalItem === undefined ? undefined : globalRound(globalItem)));
  if ('unusable' in global) {
    return { ...base, problem: 'global-unusable', detail: `${globalItem!.place}: ${global.unusable}` };
  }
  if (local.value !== undefined && !samePassages(local.value, rows)) {
    return { ...base, problem: 'local-other-passages', detail: otherPassages(localItem!.place, local.value, rows) };
  }
  if (global.value !== undefined && !samePassages(global.value.em, rows)) {
    return {
      ...base,
      problem: 'global-other-passages',
      detail: otherPassages(globalItem!.place, global.value.em, rows),
    };
  }
  if (global.value !== undefined && global.value.query !== round.current_query) {
    return {
      ...base,
      problem: 'query-differs',
      detail: `${globalItem!.place}: "current_query" differs from ${item.place}`,
    };
  }
  const historyDiffers = global.value !== undefined && JSON.stringify(global.value.history) !== JSON.stringify(history);
  return { ...base, local: local.value, global: global.value, problem: undefined, historyDiffers };
}

function usable<T>(read: () => T): { readonly value: T } | { readonly unusable: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof UnusableRound) return { unusable: error.message };
    throw error;
  }
}

function samePassages(utilities: Utilities, rows: readonly number[]): boolean {
  return utilities.size === new Set(rows).size && rows.every((row) => utilities.has(row));
}

function otherPassages(place: string, utilities: Utilities, rows: readonly number[]): string {
  const wanted = new Set(rows);
  const unknown = [...utilities.keys()].find((row) => !wanted.has(row));
  const missing = rows.find((row) => !utilities.has(row));
  const difference =
    unknown === undefined ? `passage ${missing} has none` : `passage ${unknown} is not a candidate of the round`;
  return `${place}: ${utilities.size} utilities for ${wanted.size} candidates; ${difference}`;
}
