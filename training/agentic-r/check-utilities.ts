import type { CandidateRound } from './candidate-item.ts';
import {
  type JudgedRound,
  judgedRounds,
  ROUND_PROBLEMS,
  type RoundProblem,
  type UtilityFiles,
} from './judged-rounds.ts';
import type { KeyedLines } from './keyed-lines.ts';
import { roundKey } from './round-key.ts';

/** Problems described in words at most, of each type. */
const MAX_EXAMPLES = 3;

/** What stands in a file of utilities. */
export interface UtilityFileCounts {
  readonly rounds: number;
  /** Lines for a round that an earlier line has; the last line counts. */
  readonly repeated: number;
  /** Rounds that the candidates file does not have. */
  readonly unknown: number;
}

export interface UtilityCounts {
  /** Rounds of the candidates file. */
  readonly rounds: number;
  /** Rounds with the utilities of all files. */
  readonly usable: number;
  readonly problems: Readonly<Record<RoundProblem, number>>;
  /** Of the rounds without global utilities: those after the fourth, and those with another number of candidates, which step 3-2 omits. */
  readonly noGlobalByDesign: number;
  /** Usable rounds whose history in the file of step 3-2 lacks queries. */
  readonly historyDiffers: number;
  /** Rounds that the candidates file has twice. */
  readonly repeatedRounds: number;
  readonly local?: UtilityFileCounts;
  readonly global?: UtilityFileCounts;
  readonly examples: readonly string[];
}

/** Step 3-2 answers with up to 5 searches, so the fifth round has no continuation. */
const LAST_GLOBAL_ROUND = 4;
const GLOBAL_CANDIDATES = 20;

/** Counts what the rounds of a candidates file have; feed it each round, then take the `counts`. */
export class UtilityCheck {
  readonly #files: UtilityFiles;
  readonly #problems = Object.fromEntries(ROUND_PROBLEMS.map((problem) => [problem, 0])) as Record<
    RoundProblem,
    number
  >;
  readonly #examples: string[] = [];
  readonly #seen = new Set<string>();
  #rounds = 0;
  #usable = 0;
  #noGlobalByDesign = 0;
  #historyDiffers = 0;
  #repeatedRounds = 0;

  constructor(files: UtilityFiles) {
    this.#files = files;
  }

  /** Returns false for a round that an earlier item has: it is counted and should not be used again. */
  add({ item, round, problem, detail, historyDiffers }: JudgedRound): boolean {
    const key = roundKey(item.id, round.round_index);
    if (this.#seen.has(key)) {
      this.#repeatedRounds += 1;
      return false;
    }
    this.#seen.add(key);
    this.#rounds += 1;
    if (historyDiffers) this.#historyDiffers += 1;
    if (problem === undefined) {
      this.#usable += 1;
      return true;
    }
    this.#problems[problem] += 1;
    if (detail !== undefined && this.#problems[problem] <= MAX_EXAMPLES) this.#examples.push(detail);
    if (problem === 'no-global' && omittedByDesign(round)) this.#noGlobalByDesign += 1;
    return true;
  }

  counts(): UtilityCounts {
    const { local, global } = this.#files;
    return {
      rounds: this.#rounds,
      usable: this.#usable,
      problems: this.#problems,
      noGlobalByDesign: this.#noGlobalByDesign,
      historyDiffers: this.#historyDiffers,
      repeatedRounds: this.#repeatedRounds,
      local: local === undefined ? undefined : this.#fileCounts(local),
      global: global === undefined ? undefined : this.#fileCounts(global),
      examples: this.#examples,
    };
  }

  #fileCounts(file: KeyedLines): UtilityFileCounts {
    let unknown = 0;
    for (const key of file.keys()) if (!this.#seen.has(key)) unknown += 1;
    return { rounds: file.size, repeated: file.repeated, unknown };
  }
}

/** Whether step 3-2 makes no utilities for a round. */
function omittedByDesign({ round_index: index, candidate_passage_ids: rows }: CandidateRound): boolean {
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
  { onOpen = async () => undefined, signal }: { onOpen?: (open: OpenUtility) => Promise<void>; signal?: AbortSignal },
): Promise<UtilityCounts> {
  const check = new UtilityCheck(files);
  for await (const judged of judgedRounds(candidates, files, signal)) {
    const { item, round, problem } = judged;
    if (!check.add(judged) || problem === undefined) continue;
    if (problem === 'no-candidates' || (problem === 'no-global' && omittedByDesign(round))) continue;
    await onOpen({ id: item.id, round_index: round.round_index, problem });
  }
  return check.counts();
}
