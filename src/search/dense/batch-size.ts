/** Target time of a batch, in milliseconds, in addition to twice the fixed cost of a pass over the codes. */
const BATCH_MS = 25;
/** A batch may always have this many queries: the slower a query is, the more batching saves. */
const MIN_QUERIES = 8;
/** Bounds the memory of a batch's vectors and hits. */
const MAX_QUERIES = 1_024;
/** Weight of a measurement relative to the next one. */
const DECAY = 0.9;
/** Relative standard deviation of the batch sizes at which the measured slope and the prior have equal weight. */
const PRIOR_SPREAD = 0.2;

/**
 * Estimates how many queries fit into the target time of a batch. A batch of n queries takes about a + b·n, where a is the cost
 * of one pass over the codes and b the cost of each query. A new query waits for the running batch and runs in the next one, so with
 * batches of 2·a + 25 ms it takes at most 4·a + 50 ms. Batches 1.5 times as large would save only a tenth of the engine's work
 * on a million rows.
 */
export class BatchSize {
  // Decaying sums over the batches of 1, n, n², t and n·t.
  #count = 0;
  #n = 0;
  #nn = 0;
  #t = 0;
  #nt = 0;

  observe(queries: number, ms: number): void {
    this.#count = this.#count * DECAY + 1;
    this.#n = this.#n * DECAY + queries;
    this.#nn = this.#nn * DECAY + queries * queries;
    this.#t = this.#t * DECAY + ms;
    this.#nt = this.#nt * DECAY + queries * ms;
  }

  /** Expected time to search the queries in consecutive batches, in milliseconds; 0 before the first measurement. */
  expectedMs(queries: number): number {
    if (this.#count === 0 || queries === 0) return 0;
    const { fixed, each } = this.#line();
    return fixed * Math.ceil(queries / this.queries) + each * queries;
  }

  /** Largest size of the next batch, in queries. */
  get queries(): number {
    if (this.#count === 0) return MIN_QUERIES;
    const { fixed, each } = this.#line();
    const fitting = each === 0 ? MAX_QUERIES : Math.floor((BATCH_MS + fixed) / each);
    return Math.min(MAX_QUERIES, Math.max(MIN_QUERIES, fitting));
  }

  /**
   * Least squares fit of a and b, both ≥ 0. Batches of similar sizes cannot tell a from b; the prior then attributes all time to
   * the queries.
   */
  #line(): { fixed: number; each: number } {
    const n = this.#n / this.#count;
    const t = this.#t / this.#count;
    const variance = this.#nn / this.#count - n * n;
    const covariance = this.#nt / this.#count - n * t;
    const prior = (PRIOR_SPREAD * n) ** 2;
    const slope = (covariance + prior * (t / n)) / (variance + prior);
    const each = Math.max(0, Math.min(slope, t / n));
    return { fixed: t - each * n, each };
  }
}
