interface Hit {
  readonly row: number;
  readonly score: number;
}

/** A small k is sorted after more hits than 2k, because each sorting costs as much as comparing many hits. */
const MORE_HITS = 16;

/**
 * The k best of a stream of scored rows. Larger scores are better, equal scores are ordered by the lower row. This order is total, so
 * the result does not depend on the order of the stream.
 */
export class TopK {
  readonly #k: number;
  /** The k best so far, and rows that came since the last sorting. */
  #hits: Hit[] = [];
  /** The last of the k best at the last sorting; undefined if there were fewer. */
  #worst: Hit | undefined;

  constructor(k: number) {
    this.#k = k;
  }

  offer(row: number, score: number): void {
    const worst = this.#worst;
    if (worst !== undefined && (score < worst.score || (score === worst.score && row > worst.row))) return;
    this.#hits.push({ row, score });
    if (this.#hits.length >= 2 * this.#k + MORE_HITS) this.#sort();
  }

  /** Best first. */
  sorted(): { rows: number[]; scores: number[] } {
    this.#sort();
    return { rows: this.#hits.map(({ row }) => row), scores: this.#hits.map(({ score }) => score) };
  }

  #sort(): void {
    this.#hits.sort((a, b) => b.score - a.score || a.row - b.row);
    this.#hits.length = Math.min(this.#hits.length, this.#k);
    this.#worst = this.#hits[this.#k - 1];
  }
}

/** The hits of each query in arrays of `places` for each query, as in SearchResult. */
export function hitArrays(queries: readonly TopK[], places: number) {
  const counts = new Uint32Array(queries.length);
  const rows = new Float64Array(queries.length * places).fill(-1);
  const scores = new Float64Array(queries.length * places);
  for (const [q, best] of queries.entries()) {
    const hits = best.sorted();
    counts[q] = hits.rows.length;
    rows.set(hits.rows, q * places);
    scores.set(hits.scores, q * places);
  }
  return { counts, rows, scores };
}
