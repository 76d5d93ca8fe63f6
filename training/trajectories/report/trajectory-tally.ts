import type { Trajectory } from '../trajectory.ts';
import { type Gold, type TurnFacts, turnFacts } from './trajectory-facts.ts';

/** Shares of the trajectories whose relevant passages or answers are known; null if there are none. */
interface Reached {
  /** At least one relevant passage was shown. */
  readonly goldAny: number | null;
  /** All of them were shown. */
  readonly goldAll: number | null;
  /** Mean share of them that was shown. */
  readonly goldRecall: number | null;
  /** A passage with an answer was shown. */
  readonly answer: number | null;
}

/** Counts of searches. */
interface SearchCounts {
  readonly queries: number;
  readonly repeated: number;
  readonly unchanged: number;
  readonly shown: number;
  readonly shownBefore: number;
  /** Null if no query says whether it was truncated. */
  readonly truncated: number | null;
}

export interface TurnReport extends SearchCounts, Reached {
  readonly turn: number;
  /** Trajectories that searched in this turn. What was reached counts all trajectories, also those that ended before. */
  readonly trajectories: number;
}

export interface GroupReport extends SearchCounts, Reached {
  /** The question type; null for all trajectories. */
  readonly type: string | null;
  readonly trajectories: number;
  readonly withoutSearch: number;
  /** Mean number of turns with a search. */
  readonly meanTurns: number;
  /** Trajectories whose relevant passages are known, and those whose answers and shown texts are. */
  readonly judged: number;
  readonly answerable: number;
  /** Mean `em` of the final answers; null if the file has none. */
  readonly correct: number | null;
  readonly turns: readonly TurnReport[];
}

/** Sums of a turn, or of all turns. */
interface Sums {
  trajectories: number;
  queries: number;
  repeated: number;
  unchanged: number;
  shown: number;
  shownBefore: number;
  truncated: number;
  /** Queries of which it is known whether they were truncated. */
  truncationKnown: number;
}

/** What changed in a turn, for the trajectories with gold; cumulative values follow from it. */
interface Gains {
  any: number;
  all: number;
  recall: number;
  answer: number;
}

/** Adds up trajectories. Memory does not depend on their number. */
export class TrajectoryTally {
  readonly #type: string | null;
  readonly #sums = new Map<number, Sums>();
  readonly #gains = new Map<number, Gains>();
  #trajectories = 0;
  #withoutSearch = 0;
  #turns = 0;
  #judged = 0;
  #answerable = 0;
  #graded = 0;
  #correct = 0;

  constructor(type: string | null) {
    this.#type = type;
  }

  add(trajectory: Trajectory, gold: Gold): void {
    const turns = turnFacts(trajectory, gold);
    this.#trajectories += 1;
    this.#turns += turns.length;
    if (turns.length === 0) this.#withoutSearch += 1;
    const em = (trajectory.output['metric_score'] as { em?: unknown } | null)?.em;
    if (typeof em === 'number') {
      this.#graded += 1;
      this.#correct += em;
    }
    const wanted = new Set(gold.ids).size;
    if (wanted > 0) this.#judged += 1;
    // Without a search nothing was shown, so that no answer was.
    const isAnswerable =
      gold.answers.length > 0 && (turns.length === 0 || turns.some(({ answerFound }) => answerFound !== null));
    if (isAnswerable) this.#answerable += 1;
    let before: Pick<TurnFacts, 'goldFound' | 'answerFound'> = { goldFound: 0, answerFound: false };
    for (const facts of turns) {
      this.#addSums(facts);
      this.#addGains(facts, before, wanted);
      before = facts;
    }
  }

  report(): GroupReport {
    const turns: TurnReport[] = [];
    const total: Sums = nothing();
    const reached: Gains = { any: 0, all: 0, recall: 0, answer: 0 };
    const last = Math.max(0, ...this.#sums.keys());
    for (let turn = 1; turn <= last; turn++) {
      const sums = this.#sums.get(turn) ?? nothing();
      const gains = this.#gains.get(turn);
      for (const name of Object.keys(total) as (keyof Sums)[]) total[name] += sums[name];
      for (const name of Object.keys(reached) as (keyof Gains)[]) reached[name] += gains?.[name] ?? 0;
      turns.push({ turn, trajectories: sums.trajectories, ...counts(sums), ...this.#reached(reached) });
    }
    return {
      type: this.#type,
      trajectories: this.#trajectories,
      withoutSearch: this.#withoutSearch,
      meanTurns: this.#trajectories === 0 ? 0 : this.#turns / this.#trajectories,
      judged: this.#judged,
      answerable: this.#answerable,
      correct: this.#graded === 0 ? null : this.#correct / this.#graded,
      ...counts(total),
      ...this.#reached(reached),
      turns,
    };
  }

  #addSums(facts: TurnFacts): void {
    const sums = this.#sums.get(facts.turn) ?? nothing();
    this.#sums.set(facts.turn, sums);
    sums.trajectories += 1;
    sums.queries += facts.queries;
    sums.repeated += facts.repeated;
    sums.unchanged += facts.unchanged;
    sums.shown += facts.shown;
    sums.shownBefore += facts.shownBefore;
    if (facts.truncated === null) return;
    sums.truncated += facts.truncated;
    sums.truncationKnown += facts.queries;
  }

  #addGains(facts: TurnFacts, before: Pick<TurnFacts, 'goldFound' | 'answerFound'>, wanted: number): void {
    const gains = this.#gains.get(facts.turn) ?? { any: 0, all: 0, recall: 0, answer: 0 };
    this.#gains.set(facts.turn, gains);
    if (wanted > 0) {
      if (before.goldFound === 0 && facts.goldFound > 0) gains.any += 1;
      if (before.goldFound < wanted && facts.goldFound === wanted) gains.all += 1;
      gains.recall += (facts.goldFound - before.goldFound) / wanted;
    }
    if (facts.answerFound === true && before.answerFound !== true) gains.answer += 1;
  }

  #reached({ any, all, recall, answer }: Gains): Reached {
    const share = (sum: number, of: number): number | null => (of === 0 ? null : sum / of);
    return {
      goldAny: share(any, this.#judged),
      goldAll: share(all, this.#judged),
      goldRecall: share(recall, this.#judged),
      answer: share(answer, this.#answerable),
    };
  }
}

function nothing(): Sums {
  return {
    trajectories: 0,
    queries: 0,
    repeated: 0,
    unchanged: 0,
    shown: 0,
    shownBefore: 0,
    truncated: 0,
    truncationKnown: 0,
  };
}

function counts({ queries, repeated, unchanged, shown, shownBefore, truncated, truncationKnown }: Sums): SearchCounts {
  return { queries, repeated, unchanged, shown, shownBefore, truncated: truncationKnown === 0 ? null : truncated };
}
