import {
  itemError,
  jsonType,
  objectField,
  type ReadItem,
  stringField,
  stringsField,
} from '../trajectories/read-items.ts';
import { type CandidateRound, type ReadCandidates, readCandidates, roundKey } from './candidates-file.ts';
import type { KeyedLines } from './keyed-lines.ts';

/** Why a round has no usable utilities. `no-candidates`: its query could not be searched or found nothing, so there is nothing to judge. */
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

/** A candidate of a round with its utilities; one of them may be missing, then the other decides alone. */
export interface JudgedCandidate {
  readonly row: number;
  /** 1 if the agent answered correctly with this candidate alone, else 0. */
  readonly em: number | undefined;
  /** The judge's number / 100. */
  readonly local: number | undefined;
}

/** A round of the candidates file, joined with its utilities from either file or both. */
export interface JudgedRound {
  readonly item: ReadCandidates;
  readonly round: CandidateRound;
  /** The agent's earlier queries, oldest first, from the candidates file. */
  readonly history: readonly string[];
  /** In the order of retrieval; empty if the round has a problem. */
  readonly candidates: readonly JudgedCandidate[];
  /** Undefined without a file of global utilities, or if the round has a problem. */
  readonly global?: GlobalRound;
  /** The first problem; undefined if the utilities of all files can be used. */
  readonly problem?: RoundProblem;
  readonly detail?: string;
  /** Whether the history of step 3-2 differs from the candidates file: its resume loses queries. */
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
  const rows = round.candidate_passage_ids;
  const joined = { item, round, history, candidates: [], historyDiffers: false };
  const unusable = (problem: RoundProblem, detail?: string): JudgedRound => ({ ...joined, problem, detail });
  if (rows.length === 0) return unusable('no-candidates');
  const key = roundKey(item.id, round.round_index);
  const localItem = await files.local?.read(key);
  const globalItem = await files.global?.read(key);
  if (files.local !== undefined && localItem === undefined) return unusable('no-local');
  if (files.global !== undefined && globalItem === undefined) return unusable('no-global');
  const local = localItem === undefined ? undefined : localUtilities(localItem);
  if (typeof local === 'string') return unusable('local-unusable', `${localItem!.place}: ${local}`);
  const global = globalItem === undefined ? undefined : globalRound(globalItem);
  if (typeof global === 'string') return unusable('global-unusable', `${globalItem!.place}: ${global}`);
  const localDiffers = local && passagesDiffer(local, rows);
  if (localDiffers) return unusable('local-other-passages', `${localItem!.place}: ${localDiffers}`);
  const globalDiffers = global && passagesDiffer(global.em, rows);
  if (globalDiffers) return unusable('global-other-passages', `${globalItem!.place}: ${globalDiffers}`);
  if (global !== undefined && global.query !== round.current_query) {
    return unusable('query-differs', `${globalItem!.place}: "current_query" differs from ${item.place}`);
  }
  const candidates = rows.map((row) => ({ row, em: global?.em.get(row), local: local && local.get(row)! / 100 }));
  const historyDiffers = global !== undefined && JSON.stringify(global.history) !== JSON.stringify(history);
  return { ...joined, candidates, global, historyDiffers };
}

/** The utilities of a round: one number for each candidate, by its row. */
type Utilities = ReadonlyMap<number, number>;

/** How the passages with utilities differ from the candidates; undefined if they are the same. */
function passagesDiffer(utilities: Utilities, rows: readonly number[]): string | undefined {
  const wanted = new Set(rows);
  const unknown = [...utilities.keys()].find((row) => !wanted.has(row));
  const missing = rows.find((row) => !utilities.has(row));
  if (unknown === undefined && missing === undefined) return undefined;
  const difference =
    unknown === undefined ? `passage ${missing} has none` : `passage ${unknown} is not a candidate of the round`;
  return `${utilities.size} utilities for ${wanted.size} candidates; ${difference}`;
}

type GlobalRound = Exclude<ReturnType<typeof globalRound>, string>;

/** The judge's utilities of step 3-1, `docid_score` with whole numbers from 0 to 100; or why they cannot be used. */
function localUtilities(item: ReadItem): Utilities | string {
  const utilities = new Map<number, number>();
  for (const [row, score] of scores(item)) {
    if (!Number.isInteger(score) || (score as number) < 0 || (score as number) > 100) {
      return `the utility of passage ${row} is ${jsonType(score)}; expected a whole number from 0 to 100`;
    }
    utilities.set(row, score as number);
  }
  return utilities;
}

/** A round of step 3-2, `docid_score` with `metric_score.em`; or why it cannot be used. */
function globalRound(item: ReadItem) {
  const question = stringField(item, 'question');
  /** The agent's earlier queries, oldest first. After a resume of step 3-2 some may be missing. */
  const history = stringsField(item, 'history_queries');
  const query = stringField(item, 'current_query');
  const em = new Map<number, number>();
  for (const [row, score] of scores(item)) {
    const found = (score as { metric_score?: { em?: unknown } } | null)?.metric_score?.em;
    if (found !== 0 && found !== 1) {
      return `metric_score.em of passage ${row} is ${jsonType(found)}; expected 0 or 1`;
    }
    em.set(row, found);
  }
  return { question, history, query, em: em as Utilities };
}

/** The scores of `docid_score`, one after the other: a caller that stops at an unusable score has not yet met a bad id after it. */
function* scores(item: ReadItem): Generator<readonly [row: number, score: unknown], void> {
  for (const [id, score] of Object.entries(objectField(item, 'docid_score'))) {
    if (!/^\d{1,15}$/.test(id)) {
      throw itemError(
        item.place,
        `"docid_score" has the passage ${JSON.stringify(id)}; expected row numbers of the index, written as strings`,
      );
    }
    yield [Number(id), score];
  }
}
