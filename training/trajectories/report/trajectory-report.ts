import { type Question, withoutLabels } from '../../../evaluation/read-questions.ts';
import { answerMatcher } from '../../../src/search/answer-match.ts';
import { KnownQuestions } from '../../records/known-questions.ts';
import type { Search, Trajectory } from '../trajectory.ts';

/** Question types told apart; a file with more has ids in that field. */
const MAX_TYPES = 50;

export type TrajectoryReport = Awaited<ReturnType<typeof trajectoryReport>>;
export type GroupReport = TrajectoryReport['all'];

/**
 * What trajectories reached and what their searches wasted. Golden answers come from the questions, else from the trajectories; relevant
 * passages and types only from the questions, which are found as `KnownQuestions` says.
 */
export async function trajectoryReport(
  trajectories: AsyncIterable<Trajectory>,
  questions: readonly Question[] | undefined,
) {
  const knownQuestions = new KnownQuestions(questions ?? []);
  const all = new TrajectoryTally(null);
  const types = new Map<string, TrajectoryTally>();
  let unknownQuestions = 0;
  for await (const trajectory of trajectories) {
    const { questionId, dataset, question, goldenAnswers } = trajectory;
    const known = knownQuestions.find({ id: questionId, dataset, text: question });
    if (known === undefined) unknownQuestions += 1;
    const answers = known?.goldenAnswers?.length ? known.goldenAnswers : goldenAnswers;
    const gold = { ids: known?.goldIds ?? [], answers: withoutLabels(answers) };
    all.add(trajectory, gold);
    const type = known?.type;
    if (type === undefined) continue;
    const name = types.has(type) || types.size < MAX_TYPES ? type : 'other types';
    const tally = types.get(name) ?? new TrajectoryTally(name);
    types.set(name, tally);
    tally.add(trajectory, gold);
  }
  return {
    all: all.report(),
    /** By question type, by name; empty if no question has a type. */
    types: [...types.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, tally]) => tally.report()),
    /** Trajectories whose question is not in the questions file; null without such a file. */
    unknownQuestions: questions === undefined ? null : unknownQuestions,
  };
}

/** Turns told apart; later ones are added to the last. */
const MAX_TURNS = 32;

/** Sums over the trajectories of a turn. The last four count what was reached in this turn and not before. */
const NOTHING = {
  trajectories: 0,
  queries: 0,
  /** Queries that equal an earlier query of the trajectory, but for case and white space. */
  repeated: 0,
  /** Queries that brought no passage that was not shown before. */
  unchanged: 0,
  /** Passages shown, and how many of them were shown before, in an earlier search or for another query of the turn. */
  shown: 0,
  shownBefore: 0,
  /** Queries truncated to the token limit, and queries of which it is known whether they were. */
  truncated: 0,
  truncationKnown: 0,
  goldAny: 0,
  goldAll: 0,
  goldRecall: 0,
  answer: 0,
};
type Sums = typeof NOTHING;

/** Adds up trajectories. Memory does not depend on their number. */
class TrajectoryTally {
  readonly #type: string | null;
  readonly #sums = new Map<number, Sums>();
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

  /** `gold`: ids of the relevant passages, and alternative correct answers; empty if they are not known. */
  add(
    { searches, output }: Trajectory,
    gold: { readonly ids: readonly string[]; readonly answers: readonly string[] },
  ): void {
    const turns = byTurn(searches);
    this.#trajectories += 1;
    this.#turns += turns.size;
    if (turns.size === 0) this.#withoutSearch += 1;
    const em = (output['metric_score'] as { em?: unknown } | null)?.em;
    if (typeof em === 'number') {
      this.#graded += 1;
      this.#correct += em;
    }
    const goldIds = new Set(gold.ids);
    if (goldIds.size > 0) this.#judged += 1;
    const hasAnswer = gold.answers.length === 0 ? undefined : answerMatcher(gold.answers);
    // Without a search nothing was shown, so that no answer was.
    const hasTexts =
      searches.length === 0 || searches.some(({ shown }) => shown.some(({ contents }) => contents !== undefined));
    if (hasAnswer !== undefined && hasTexts) this.#answerable += 1;
    const queries = new Set<string>();
    const shown = new Set<string>();
    const found = new Set<string>();
    let isAnswered = false;
    for (const [turn, ofTurn] of turns) {
      const sums = this.#sums.get(turn) ?? { ...NOTHING };
      this.#sums.set(turn, sums);
      sums.trajectories += 1;
      const [foundBefore, wasAnswered] = [found.size, isAnswered];
      for (const search of ofTurn) {
        sums.queries += 1;
        const query = search.query.normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/gu, ' ');
        if (queries.has(query)) sums.repeated += 1;
        queries.add(query);
        if (search.shown.every(({ id }) => shown.has(id))) sums.unchanged += 1;
        for (const { id, contents } of search.shown) {
          sums.shown += 1;
          if (goldIds.has(id)) found.add(id);
          if (contents !== undefined && !isAnswered) isAnswered = hasAnswer?.(contents) === true;
          if (shown.has(id)) sums.shownBefore += 1;
          shown.add(id);
        }
      }
      if (ofTurn.every(({ truncated }) => truncated !== undefined)) {
        sums.truncated += ofTurn.filter(({ truncated }) => truncated).length;
        sums.truncationKnown += ofTurn.length;
      }
      if (isAnswered && !wasAnswered) sums.answer += 1;
      if (found.size === foundBefore) continue;
      if (foundBefore === 0) sums.goldAny += 1;
      if (found.size === goldIds.size) sums.goldAll += 1;
      sums.goldRecall += (found.size - foundBefore) / goldIds.size;
    }
  }

  report() {
    const total = { ...NOTHING };
    const turns = [];
    const last = Math.max(0, ...this.#sums.keys());
    for (let turn = 1; turn <= last; turn++) {
      const sums = this.#sums.get(turn) ?? NOTHING;
      for (const name of Object.keys(total) as (keyof Sums)[]) total[name] += sums[name];
      const { trajectories } = sums;
      // The shares count all trajectories, also those that ended before this turn.
      turns.push({ turn, trajectories, ...searchCounts(sums), ...this.#reached(total) });
    }
    return {
      type: this.#type,
      trajectories: this.#trajectories,
      withoutSearch: this.#withoutSearch,
      /** Mean number of turns with a search. */
      meanTurns: this.#trajectories === 0 ? 0 : this.#turns / this.#trajectories,
      /** Trajectories whose relevant passages are known, and those whose answers and shown texts are. */
      judged: this.#judged,
      answerable: this.#answerable,
      /** Mean `em` of the final answers; null if the file has none. */
      correct: share(this.#correct, this.#graded),
      ...searchCounts(total),
      ...this.#reached(total),
      /** By turn, from 1. `trajectories`: those that searched in the turn. */
      turns,
    };
  }

  /** Shares of the trajectories whose relevant passages or answers are known; null if there are none. */
  #reached({ goldAny, goldAll, goldRecall, answer }: Sums) {
    return {
      /** At least one relevant passage was shown. */
      goldAny: share(goldAny, this.#judged),
      goldAll: share(goldAll, this.#judged),
      /** Mean share of the relevant passages that was shown. */
      goldRecall: share(goldRecall, this.#judged),
      /** A passage with an answer was shown. */
      answer: share(answer, this.#answerable),
    };
  }
}

function byTurn(searches: readonly Search[]): Map<number, Search[]> {
  const turns = new Map<number, Search[]>();
  for (const search of searches) {
    const turn = Math.min(search.turn, MAX_TURNS);
    const known = turns.get(turn);
    if (known === undefined) turns.set(turn, [search]);
    else known.push(search);
  }
  return turns;
}

function searchCounts({ queries, repeated, unchanged, shown, shownBefore, truncated, truncationKnown }: Sums) {
  return { queries, repeated, unchanged, shown, shownBefore, truncated: truncationKnown === 0 ? null : truncated };
}

function share(sum: number, of: number): number | null {
  return of === 0 ? null : sum / of;
}
