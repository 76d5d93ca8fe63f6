/**
 * The k best of a stream of scored rows, as a binary heap with the worst at the root. Larger scores are better, equal scores
 * are ordered by the lower row. This order is total, so the result does not depend on the order of the stream.
 */
export class TopK {
  readonly #k: number;
  readonly #rows: number[] = [];
  readonly #scores: number[] = [];

  constructor(k: number) {
    this.#k = k;
  }

  offer(row: number, score: number): void {
    if (this.#rows.length < this.#k) {
      this.#rows.push(row);
      this.#scores.push(score);
      this.#siftUp(this.#rows.length - 1);
    } else if (better(score, row, this.#scores[0]!, this.#rows[0]!)) {
      this.#rows[0] = row;
      this.#scores[0] = score;
      this.#siftDown();
    }
  }

  /** Best first. */
  sorted(): { rows: number[]; scores: number[] } {
    const order = this.#rows.map((_, i) => i);
    order.sort((a, b) => (better(this.#scores[a]!, this.#rows[a]!, this.#scores[b]!, this.#rows[b]!) ? -1 : 1));
    return { rows: order.map((i) => this.#rows[i]!), scores: order.map((i) => this.#scores[i]!) };
  }

  #siftUp(start: number): void {
    let child = start;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.#worse(child, parent)) return;
      this.#swap(child, parent);
      child = parent;
    }
  }

  #siftDown(): void {
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      if (left >= this.#rows.length) return;
      const right = left + 1;
      const worst = right < this.#rows.length && this.#worse(right, left) ? right : left;
      if (!this.#worse(worst, parent)) return;
      this.#swap(worst, parent);
      parent = worst;
    }
  }

  #worse(a: number, b: number): boolean {
    return better(this.#scores[b]!, this.#rows[b]!, this.#scores[a]!, this.#rows[a]!);
  }

  #swap(a: number, b: number): void {
    [this.#rows[a], this.#rows[b]] = [this.#rows[b]!, this.#rows[a]!];
    [this.#scores[a], this.#scores[b]] = [this.#scores[b]!, this.#scores[a]!];
  }
}

function better(scoreA: number, rowA: number, scoreB: number, rowB: number): boolean {
  return scoreA > scoreB || (scoreA === scoreB && rowA < rowB);
}
