/**
 * The stages of one request in the order they happen, but for `queue`, which is the waiting before encoder and engine, and
 * for an equal query of another request. Serialising is the reply's own and measured by who replies.
 */
export const STAGES = ['queue', 'embed', 'search', 'fetch'] as const;
export type Stage = (typeof STAGES)[number];

/** Milliseconds per stage: the same record feeds the reply's header, the log line and the load test. */
export type StageTimings = { readonly [stage in Stage]: number };

export const NO_TIMINGS: StageTimings = Object.freeze({ queue: 0, embed: 0, search: 0, fetch: 0 });

export function addTimings(a: StageTimings, b: StageTimings): StageTimings {
  return {
    queue: a.queue + b.queue,
    embed: a.embed + b.embed,
    search: a.search + b.search,
    fetch: a.fetch + b.fetch,
  };
}

/** Measures stages one after another. */
export class Stopwatch {
  readonly #ms: Record<Stage, number> = { ...NO_TIMINGS };

  async time<T>(stage: Stage, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.#ms[stage] += performance.now() - start;
    }
  }

  /** Of a stage that was measured: the part in which nothing was done. */
  waited(stage: Stage, ms: number): void {
    this.#ms[stage] -= ms;
    this.#ms.queue += ms;
  }

  get timings(): StageTimings {
    return { ...this.#ms };
  }
}
