import type { RecordedQuery } from '../records/recorded-query.ts';
import type { TargetHit } from './replay-target.ts';

export interface Difference {
  readonly rbo: number;
  readonly record: RecordedQuery;
  readonly now: readonly Pick<TargetHit, 'id' | 'row' | 'score' | 'title'>[];
}

/** Keeps the queries whose lists differ most, by rank-biased overlap; of equal ones the first. */
export class BiggestDifferences {
  readonly #most: number;
  readonly #kept: Difference[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  add(difference: Difference): void {
    const kept = this.#kept;
    if (this.#most === 0 || (kept.length === this.#most && difference.rbo >= kept.at(-1)!.rbo)) return;
    const place = kept.findIndex(({ rbo }) => rbo > difference.rbo);
    kept.splice(place === -1 ? kept.length : place, 0, difference);
    if (kept.length > this.#most) kept.pop();
  }

  /** The biggest first. */
  get all(): readonly Difference[] {
    return this.#kept;
  }
}
