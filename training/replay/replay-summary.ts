import type { ComparedQuery } from './compared-query.ts';

/** Means over queries and counts of them. */
export interface SummaryValues {
  readonly queries: number;
  /** Queries whose lists are equal. */
  readonly identical: number;
  /** Mean rank-biased overlap; null without queries. */
  readonly rbo: number | null;
  /**
   * For each cutoff the mean overlap, the queries that it was measured over, and how many of these have the same first k passages, in
   * any order.
   */
  readonly overlap: readonly {
    readonly k: number;
    readonly mean: number | null;
    readonly queries: number;
    readonly same: number;
  }[];
  /** Over the queries of questions with relevant passages. */
  readonly gold: {
    readonly queries: number;
    /** Relevant passages found, and of them those that only one of the lists has. */
    readonly before: number;
    readonly now: number;
    readonly gained: number;
    readonly lost: number;
    /** Queries that find a relevant passage now and did not before, and the reverse. */
    readonly gainedQueries: number;
    readonly lostQueries: number;
  };
  /** Over the queries of questions with golden answers: those that find a passage with an answer. */
  readonly answers: {
    readonly queries: number;
    readonly before: number;
    readonly now: number;
    readonly gained: number;
    readonly lost: number;
  };
}

/** Sums up compared queries in constant memory. */
export class ReplaySummary {
  readonly #cutoffs: readonly number[];
  #queries = 0;
  #identical = 0;
  #rbo = 0;
  readonly #overlaps: { sum: number; queries: number; same: number }[];
  readonly #gold = { queries: 0, before: 0, now: 0, gained: 0, lost: 0, gainedQueries: 0, lostQueries: 0 };
  readonly #answers = { queries: 0, before: 0, now: 0, gained: 0, lost: 0 };

  constructor(cutoffs: readonly number[]) {
    this.#cutoffs = cutoffs;
    this.#overlaps = cutoffs.map(() => ({ sum: 0, queries: 0, same: 0 }));
  }

  add({ identical, rbo, overlaps, gold, answer }: ComparedQuery): void {
    this.#queries++;
    if (identical) this.#identical++;
    this.#rbo += rbo;
    for (const [i, overlap] of overlaps.entries()) {
      if (overlap === null) continue;
      this.#overlaps[i]!.sum += overlap;
      this.#overlaps[i]!.queries++;
      if (overlap === 1) this.#overlaps[i]!.same++;
    }
    if (gold !== null) {
      const sums = this.#gold;
      sums.queries++;
      for (const name of ['before', 'now', 'gained', 'lost'] as const) sums[name] += gold[name];
      if (gold.before === 0 && gold.now > 0) sums.gainedQueries++;
      if (gold.before > 0 && gold.now === 0) sums.lostQueries++;
    }
    if (answer !== null) {
      const sums = this.#answers;
      sums.queries++;
      if (answer.before) sums.before++;
      if (answer.now) sums.now++;
      if (answer.now && !answer.before) sums.gained++;
      if (answer.before && !answer.now) sums.lost++;
    }
  }

  /** Adds the queries of another summary with the same cutoffs. */
  addAll(other: ReplaySummary): void {
    this.#queries += other.#queries;
    this.#identical += other.#identical;
    this.#rbo += other.#rbo;
    for (const [i, { sum, queries, same }] of other.#overlaps.entries()) {
      const sums = this.#overlaps[i]!;
      sums.sum += sum;
      sums.queries += queries;
      sums.same += same;
    }
    for (const name of typedKeys(this.#gold)) this.#gold[name] += other.#gold[name];
    for (const name of typedKeys(this.#answers)) this.#answers[name] += other.#answers[name];
  }

  get values(): SummaryValues {
    return {
      queries: this.#queries,
      identical: this.#identical,
      rbo: this.#queries === 0 ? null : this.#rbo / this.#queries,
      overlap: this.#overlaps.map(({ sum, queries, same }, i) => ({
        k: this.#cutoffs[i]!,
        mean: queries === 0 ? null : sum / queries,
        queries,
        same,
      })),
      gold: { ...this.#gold },
      answers: { ...this.#answers },
    };
  }
}

function typedKeys<Sums extends object>(sums: Sums): (keyof Sums)[] {
  return Object.keys(sums) as (keyof Sums)[];
}
