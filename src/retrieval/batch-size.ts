/** Time that a batch may take beyond twice that of a lone query, in milliseconds. */
const BATCH_MS = 25;
/** Few enough queries to be a batch whatever they take: where each takes long, company saves the most. */
const LEAST = 8;
/** Vectors and hits of a batch stand in memory together. */
const MOST = 1_024;
/** What a measurement still counts after the next one. */
const DECAY = 0.9;
/** Standard deviation of the sizes, as part of their mean, from which on they are believed. */
const SURE_SPREAD = 0.2;

/**
 * Learns how many queries make a batch of the wanted time, from the batches there were. A batch of n takes about
 * a + b·n: one pass over the codes, and something for each query. Whoever arrives waits for the batch that runs and is in
 * the next one, so two batches of 2·a + 25 ms are 50 ms and four lone searches at the most. Half as many queries again in a
 * batch would save a tenth of the engine's work on a million rows.
 */
export class BatchSize {
  // Sums over the batches, older ones counting less: of 1, n, n², t and n·t.
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

  /** Expected milliseconds of so many queries, one batch after another; 0 before anything was measured. */
  expectedMs(queries: number): number {
    if (this.#count === 0 || queries === 0) return 0;
    const { fixed, each } = this.#line();
    return fixed * Math.ceil(queries / this.queries) + each * queries;
  }

  /** Queries of the next batch, at most. */
  get queries(): number {
    if (this.#count === 0) return LEAST;
    const { fixed, each } = this.#line();
    const fitting = each === 0 ? MOST : Math.floor((BATCH_MS + fixed) / each);
    return Math.min(MOST, Math.max(LEAST, fitting));
  }

  /**
   * The line of least squares, with neither part negative. The less the sizes differ, the less they tell the parts apart,
   * and the more of the time is taken for the queries'.
   */
  #line(): { fixed: number; each: number } {
    const n = this.#n / this.#count;
    const t = this.#t / this.#count;
    const variance = this.#nn / this.#count - n * n;
    const covariance = this.#nt / this.#count - n * t;
    const doubt = (SURE_SPREAD * n) ** 2;
    const slope = (covariance + doubt * (t / n)) / (variance + doubt);
    const each = Math.max(0, Math.min(slope, t / n));
    return { fixed: t - each * n, each };
  }
}
