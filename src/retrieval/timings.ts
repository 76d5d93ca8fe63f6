/** The stages of one request in the order they happen. Serialising is the reply's own and measured by who replies. */
export const STAGES = ['embed', 'search', 'fetch'] as const;
export type Stage = (typeof STAGES)[number];

/** Milliseconds per stage: the same record feeds the reply's header, the log line and the load test. */
export type StageTimings = { readonly [stage in Stage]: number };

/** Measures stages one after another. */
export class Stopwatch {
  readonly #ms: Record<Stage, number> = { embed: 0, search: 0, fetch: 0 };

  async time<T>(stage: Stage, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.#ms[stage] += performance.now() - start;
    }
  }

  get timings(): StageTimings {
    return { ...this.#ms };
  }
}
