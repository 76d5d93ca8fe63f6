import type { RecordedQuery } from '../records/recorded-query.ts';
import type { ComparedQuery } from './compared-query.ts';
import type { Unusable } from './recorded-call.ts';
import type { KnownPassage, TargetHit } from './replay-target.ts';

/**
 * Why a record was not compared, beside the reasons of `Unusable`:
 * - `otherIds`: none of its passages has an id that the other index has, and neither has a passage of any other record of its generation.
 *   Where one has, the passages of the record are gone, and it is compared;
 * - `withoutIds`: a passage has no id, and its row belongs to another generation.
 */
export type NotCompared = Unusable | 'otherIds' | 'withoutIds';

type ShownPassage = {
  readonly id: string | null;
  readonly row: number;
  readonly score: number;
  readonly title: string | null;
};

export type ShownDifference = ReturnType<typeof shownDifference>;
export type SummaryValues = ReplaySummary['values'];

/** Sums up compared queries in constant memory. */
export class ReplaySummary {
  readonly #sums = { queries: 0, identical: 0, rbo: 0 };
  readonly #overlaps: { readonly k: number; sum: number; queries: number; same: number }[];
  /** Over the queries of questions with relevant passages. */
  readonly #gold = {
    queries: 0,
    /** Relevant passages found, and of them those that only one of the lists has. */
    before: 0,
    now: 0,
    gained: 0,
    lost: 0,
    /** Queries that find a relevant passage now and did not before, and the reverse. */
    gainedQueries: 0,
    lostQueries: 0,
  };
  /** Over the queries of questions with golden answers: those that find a passage with an answer. */
  readonly #answers = { queries: 0, before: 0, now: 0, gained: 0, lost: 0 };

  constructor(cutoffs: readonly number[]) {
    this.#overlaps = cutoffs.map((k) => ({ k, sum: 0, queries: 0, same: 0 }));
  }

  add({ identical, rbo, overlaps, gold, answer }: ComparedQuery): void {
    addTo(this.#sums, { queries: 1, identical: Number(identical), rbo });
    for (const [i, overlap] of overlaps.entries()) {
      if (overlap !== null) addTo(this.#overlaps[i]!, { sum: overlap, queries: 1, same: Number(overlap === 1) });
    }
    if (gold !== null) {
      const gainedQueries = Number(gold.before === 0 && gold.now > 0);
      const lostQueries = Number(gold.before > 0 && gold.now === 0);
      addTo(this.#gold, { queries: 1, ...gold, gainedQueries, lostQueries });
    }
    if (answer !== null) {
      const [before, now] = [Number(answer.before), Number(answer.now)];
      addTo(this.#answers, { queries: 1, before, now, gained: Number(now > before), lost: Number(before > now) });
    }
  }

  addAll(other: ReplaySummary): void {
    addTo(this.#sums, other.#sums);
    for (const [i, { sum, queries, same }] of other.#overlaps.entries()) {
      addTo(this.#overlaps[i]!, { sum, queries, same });
    }
    addTo(this.#gold, other.#gold);
    addTo(this.#answers, other.#answers);
  }

  get values() {
    const { queries, identical, rbo } = this.#sums;
    return {
      queries,
      identical,
      /** Mean rank-biased overlap; null without queries. */
      rbo: queries === 0 ? null : rbo / queries,
      /**
       * For each cutoff the mean overlap, the queries that it was measured over, and how many of these have the same first k passages,
       * in any order.
       */
      overlap: this.#overlaps.map(({ k, sum, queries, same }) => ({
        k,
        mean: queries === 0 ? null : sum / queries,
        queries,
        same,
      })),
      gold: { ...this.#gold },
      answers: { ...this.#answers },
    };
  }
}

function addTo<Name extends string>(sums: Record<NoInfer<Name>, number>, more: Readonly<Record<Name, number>>): void {
  for (const name of Object.keys(more) as Name[]) sums[name] += more[name];
}

interface Difference {
  readonly rbo: number;
  readonly record: RecordedQuery;
  readonly now: readonly ShownPassage[];
}

/** Sums of compared queries, for all of them and by turn, and those whose lists differ most. */
export class Comparisons {
  readonly #cutoffs: readonly number[];
  readonly #examples: number;
  readonly all: ReplaySummary;
  readonly turns = new Map<number | null, ReplaySummary>();
  /** The queries whose lists differ most, by rank-biased overlap, the biggest difference first; of equal ones the first query. */
  readonly differences: Difference[] = [];

  constructor(cutoffs: readonly number[], examples: number) {
    this.#cutoffs = cutoffs;
    this.#examples = examples;
    this.all = new ReplaySummary(cutoffs);
  }

  add(compared: ComparedQuery, record: RecordedQuery, now: readonly TargetHit[]): void {
    this.all.add(compared);
    this.#ofTurn(compared.turn).add(compared);
    if (!compared.identical) this.#keep(compared.rbo, record, now);
  }

  addAll(others: Comparisons): void {
    this.all.addAll(others.all);
    for (const [turn, summary] of others.turns) this.#ofTurn(turn).addAll(summary);
    for (const { rbo, record, now } of others.differences) this.#keep(rbo, record, now);
  }

  #keep(rbo: number, record: RecordedQuery, hits: readonly (TargetHit | ShownPassage)[]): void {
    const kept = this.differences;
    const place = kept.findLastIndex((other) => other.rbo <= rbo) + 1;
    if (place === this.#examples) return;
    // Without the texts of the hits, which can be long.
    const now = hits.map(({ id, row, score, title }) => ({ id, row, score, title: title ?? null }));
    kept.splice(place, 0, { rbo, record, now });
    if (kept.length > this.#examples) kept.pop();
  }

  #ofTurn(turn: number | null): ReplaySummary {
    const summary = this.turns.get(turn) ?? new ReplaySummary(this.#cutoffs);
    this.turns.set(turn, summary);
    return summary;
  }
}

/**
 * A query whose lists differ much, with both lists. The recorded passages get the titles that the target has under the same ids.
 *
 * @param known the recorded passages that were looked up; null if none were.
 */
export function shownDifference({ rbo, record, now }: Difference, known: ReadonlyMap<string, KnownPassage> | null) {
  const { query, question = null, trajectory = null, turn = null, ids, rows, scores } = record;
  const before = ids.map((id, i): ShownPassage => {
    const title = id === null ? undefined : known?.get(id)?.title;
    return { id, row: rows[i]!, score: scores[i]!, title: title ?? null };
  });
  return { rbo, query, question, trajectory, turn, before, now };
}
