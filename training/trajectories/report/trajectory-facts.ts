import { answerMatcher } from '../../../src/search/answer-match.ts';
import type { Search, Trajectory } from '../trajectory.ts';

/** What should be found for a question. */
export interface Gold {
  /** Ids of the relevant passages; empty if they are not known. */
  readonly ids: readonly string[];
  /** Alternative correct answers; empty if they are not known. */
  readonly answers: readonly string[];
}

/** What a turn of a trajectory brought. */
export interface TurnFacts {
  /** From 1. */
  readonly turn: number;
  readonly queries: number;
  /** Queries that an earlier query of the trajectory equals, but for case and white space. */
  readonly repeated: number;
  /** Queries that brought no passage that was not shown before. */
  readonly unchanged: number;
  /** Passages shown, and how many of them were shown before, in an earlier search or for another query of the turn. */
  readonly shown: number;
  readonly shownBefore: number;
  /** Queries truncated to the token limit; null if that is unknown. */
  readonly truncated: number | null;
  /** Relevant passages shown up to and with this turn. */
  readonly goldFound: number;
  /** Whether a passage with an answer was shown up to and with this turn; null if answers or texts are unknown. */
  readonly answerFound: boolean | null;
}

/** Turns told apart; later ones are added to the last. */
const MAX_TURNS = 32;

/** The turns of a trajectory in their order. */
export function turnFacts({ searches }: Trajectory, gold: Gold): TurnFacts[] {
  const queries = new Set<string>();
  const shown = new Set<string>();
  const found = new Set<string>();
  const goldIds = new Set(gold.ids);
  const hasAnswer = gold.answers.length === 0 ? undefined : answerMatcher(gold.answers);
  let answerFound: boolean | null = null;
  return [...byTurn(searches)].map(([turn, ofTurn]) => {
    const facts = { queries: 0, repeated: 0, unchanged: 0, shown: 0, shownBefore: 0 };
    let truncated: number | null = 0;
    for (const search of ofTurn) {
      facts.queries += 1;
      const query = search.query.normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/gu, ' ');
      if (queries.has(query)) facts.repeated += 1;
      queries.add(query);
      if (search.truncated === undefined) truncated = null;
      else if (search.truncated && truncated !== null) truncated += 1;
      let isNew = false;
      for (const { id, contents } of search.shown) {
        facts.shown += 1;
        if (goldIds.has(id)) found.add(id);
        if (hasAnswer !== undefined && contents !== undefined)
          answerFound = (answerFound ?? false) || hasAnswer(contents);
        if (shown.has(id)) facts.shownBefore += 1;
        else isNew = true;
        shown.add(id);
      }
      if (!isNew) facts.unchanged += 1;
    }
    return { turn, ...facts, truncated, goldFound: found.size, answerFound };
  });
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
