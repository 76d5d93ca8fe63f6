import { type CandidateRound, roundKey } from './candidates-file.ts';
import {
  type JudgedRound,
  judgedRounds,
  ROUND_PROBLEMS,
  type RoundProblem,
  type UtilityFiles,
} from './judged-rounds.ts';
import type { KeyedLines } from './keyed-lines.ts';

/** Problems described in words at most, of each type. */
const MAX_EXAMPLES = 3;
/** Step 3-2 answers with up to 5 searches, so the fifth round has no continuation. */
const LAST_GLOBAL_ROUND = 4;
const GLOBAL_CANDIDATES = 20;

export type UtilityCounts = ReturnType<UtilityCheck['counts']>;
export type UtilityFileCounts = NonNullable<UtilityCounts['local']>;

export class UtilityCheck {
  readonly #files: UtilityFiles;
  readonly #problems = Object.fromEntries(ROUND_PROBLEMS.map((name) => [name, 0])) as Record<RoundProblem, number>;
  readonly #examples: string[] = [];
  readonly #seen = new Set<string>();
  readonly #counts = {
    /** Rounds with the utilities of all files. */
    usable: 0,
    /** Rounds without global utilities that step 3-2 omits: those after the fourth, and those with another number of candidates. */
    noGlobalByDesign: 0,
    /** Usable rounds whose history in the file of step 3-2 lacks queries. */
    historyDiffers: 0,
    /** Rounds that the candidates file has twice. */
    repeatedRounds: 0,
  };

  constructor(files: UtilityFiles) {
    this.#files = files;
  }

  /** Returns false for a round that an earlier item has, which should not be used again. */
  add({ item, round, problem, detail, historyDiffers }: JudgedRound): boolean {
    const counts = this.#counts;
    const key = roundKey(item.id, round.round_index);
    if (this.#seen.has(key)) {
      counts.repeatedRounds += 1;
      return false;
    }
    this.#seen.add(key);
    if (historyDiffers) counts.historyDiffers += 1;
    if (problem === undefined) {
      counts.usable += 1;
      return true;
    }
    this.#problems[problem] += 1;
    if (detail !== undefined && this.#problems[problem] <= MAX_EXAMPLES) this.#examples.push(detail);
    if (problem === 'no-global' && isOmittedByDesign(round)) counts.noGlobalByDesign += 1;
    return true;
  }

  counts() {
    const { local, global } = this.#files;
    return {
      /** Rounds of the candidates file. */
      rounds: this.#seen.size,
      ...this.#counts,
      problems: this.#problems,
      local: local && this.#fileCounts(local),
      global: global && this.#fileCounts(global),
      examples: this.#examples,
    };
  }

  /** `unknown`: rounds that the candidates file does not have. */
  #fileCounts({ size, repeated, keys }: KeyedLines) {
    return { rounds: size, repeated, unknown: [...keys()].filter((key) => !this.#seen.has(key)).length };
  }
}

function isOmittedByDesign({ round_index: index, candidate_passage_ids: rows }: CandidateRound): boolean {
  return index > LAST_GLOBAL_ROUND || rows.length !== GLOBAL_CANDIDATES;
}

/** A round that has to be judged again. */
export interface OpenUtility {
  readonly id: string;
  readonly round_index: number;
  readonly problem: RoundProblem;
}

/**
 * Checks files of utilities against the candidates that they were made for. `onOpen` is called with each round that lacks usable
 * utilities and should have them.
 */
export async function checkUtilities(
  candidates: string,
  files: UtilityFiles,
  { onOpen, signal }: { onOpen: (open: OpenUtility) => Promise<void>; signal?: AbortSignal },
) {
  const check = new UtilityCheck(files);
  for await (const judged of judgedRounds(candidates, files, signal)) {
    const { item, round, problem } = judged;
    if (!check.add(judged) || problem === undefined) continue;
    if (problem === 'no-candidates' || (problem === 'no-global' && isOmittedByDesign(round))) continue;
    await onOpen({ id: item.id, round_index: round.round_index, problem });
  }
  return check.counts();
}
