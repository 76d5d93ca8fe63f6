import { BiggestDifferences, type Difference } from './biggest-differences.ts';
import type { ComparedQuery } from './compared-query.ts';
import { ReplaySummary } from './replay-summary.ts';

/** Sums of compared queries, for all of them and by turn, and those whose lists differ most. */
export class Comparisons {
  readonly #cutoffs: readonly number[];
  readonly all: ReplaySummary;
  readonly turns = new Map<number | null, ReplaySummary>();
  readonly differences: BiggestDifferences;

  /** @param examples number of differences to keep. */
  constructor(cutoffs: readonly number[], examples: number) {
    this.#cutoffs = cutoffs;
    this.all = new ReplaySummary(cutoffs);
    this.differences = new BiggestDifferences(examples);
  }

  get queries(): number {
    return this.all.values.queries;
  }

  add(compared: ComparedQuery, difference: Omit<Difference, 'rbo'>): void {
    this.all.add(compared);
    this.#ofTurn(compared.turn).add(compared);
    if (!compared.identical) this.differences.add({ rbo: compared.rbo, ...difference });
  }

  /** Adds the queries of others. */
  addAll(others: Comparisons): void {
    this.all.addAll(others.all);
    for (const [turn, summary] of others.turns) this.#ofTurn(turn).addAll(summary);
    for (const difference of others.differences.all) this.differences.add(difference);
  }

  #ofTurn(turn: number | null): ReplaySummary {
    let summary = this.turns.get(turn);
    if (summary === undefined) {
      summary = new ReplaySummary(this.#cutoffs);
      this.turns.set(turn, summary);
    }
    return summary;
  }
}
