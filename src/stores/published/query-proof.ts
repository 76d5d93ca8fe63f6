import { TopK } from '../../engine/top-k.ts';
import type { Candidates } from './candidate-source.ts';

interface Pending {
  readonly row: number;
  readonly value: number;
}

/**
 * The state of one query: rows with their scores, candidates that wait for theirs, and what is known of rows that were not returned.
 * `error` is the bound of the store's scores (`StoreScores`): a score differs from its approximate value by at most that.
 */
export class QueryProof {
  readonly k: number;
  readonly #error: number;
  readonly #heap: TopK;
  readonly #seen = new Set<number>();
  /** The k best scores so far, best first. */
  readonly #scores: number[] = [];
  /** Nearest first. */
  #pending: Pending[] = [];
  rescored = 0;

  constructor(k: number, error: number) {
    this.k = k;
    this.#error = error;
    this.#heap = new TopK(k);
  }

  /** Adds the candidates that may be returned; a row that was added before is skipped. */
  add({ rows, values }: Candidates, mayReturn: (row: number) => boolean): void {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (this.#seen.has(row) || !mayReturn(row)) continue;
      this.#seen.add(row);
      this.#pending.push({ row, value: values[i]! });
    }
    this.#pending.sort((a, b) => b.value - a.value);
  }

  /** The next rows, at most `limit`, whose score decides; empty once every other candidate is known to be behind the k best. */
  wanted(limit: number): readonly number[] {
    const threshold = this.#threshold();
    // An equal score belongs among the k best if its row is lower, so that only a smaller one is behind.
    const behind = this.#pending.findIndex(({ value }) => value + this.#error < threshold);
    if (behind >= 0) this.#pending.length = behind;
    return this.#pending.slice(0, limit).map(({ row }) => row);
  }

  /** Takes the scores of the rows that `wanted` returned, in their order. */
  accept(scores: readonly number[]): void {
    for (const [i, { row }] of this.#pending.splice(0, scores.length).entries()) {
      const score = scores[i]!;
      this.#heap.offer(row, score);
      this.#keep(score);
      this.rescored++;
    }
  }

  /** Whether rows whose approximate values are at most `value` are behind the k best. Call it once `wanted` is empty. */
  excludes(value: number): boolean {
    return this.#scores.length === this.k && value + this.#error < this.#scores.at(-1)!;
  }

  get found(): number {
    return this.#seen.size;
  }

  sorted(): { readonly rows: readonly number[]; readonly scores: readonly number[] } {
    return this.#heap.sorted();
  }

  /** A number that the k-th best score is not below: of known scores and of the least that candidates can have. */
  #threshold(): number {
    const lower = this.#pending.slice(0, this.k).map(({ value }) => value - this.#error);
    const all = [...this.#scores, ...lower].sort((a, b) => b - a);
    return all.length < this.k ? Number.NEGATIVE_INFINITY : all[this.k - 1]!;
  }

  /** Keeps the k best scores, best first. */
  #keep(score: number): void {
    const scores = this.#scores;
    if (scores.length === this.k && score <= scores.at(-1)!) return;
    let low = 0;
    let high = scores.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (scores[middle]! >= score) low = middle + 1;
      else high = middle;
    }
    scores.splice(low, 0, score);
    if (scores.length > this.k) scores.pop();
  }
}
