/**
 * The stages of a request in order. `queue` is the time spent waiting for the encoder, the engine, the reranker or an equal query
 * in flight. The HTTP server measures the serialisation of the response.
 */
export const STAGES = ['queue', 'embed', 'search', 'fetch', 'rerank'] as const;
export type Stage = (typeof STAGES)[number];

/** Milliseconds per stage, for the Server-Timing header, the log and the metrics. */
export type StageTimings = { readonly [stage in Stage]: number };

export const NO_TIMINGS: StageTimings = Object.freeze({ queue: 0, embed: 0, search: 0, fetch: 0, rerank: 0 });

export function addTimings(a: StageTimings, b: StageTimings): StageTimings {
  return stageTimings((stage) => a[stage] + b[stage]);
}

/** The longer time of each stage, for calls that ran at the same time. */
export function longestTimings(a: StageTimings, b: StageTimings): StageTimings {
  return stageTimings((stage) => Math.max(a[stage], b[stage]));
}

function stageTimings(ms: (stage: Stage) => number): StageTimings {
  return { queue: ms('queue'), embed: ms('embed'), search: ms('search'), fetch: ms('fetch'), rerank: ms('rerank') };
}

/** Total milliseconds of all stages, to three decimals. */
export function totalMs(timings: StageTimings): number {
  return Number(STAGES.reduce((sum, stage) => sum + timings[stage], 0).toFixed(3));
}

/** Measures consecutive stages. */
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

  /** Like `time`, but counts the time that the work waited in a queue as `queue`. */
  async timeQueued<T extends { readonly waitedMs: number }>(stage: Stage, work: () => Promise<T>): Promise<T> {
    const done = await this.time(stage, work);
    this.waited(stage, done.waitedMs);
    return done;
  }

  /** Moves part of a stage's time to `queue`. */
  waited(stage: Stage, ms: number): void {
    this.#ms[stage] -= ms;
    this.#ms.queue += ms;
  }

  get timings(): StageTimings {
    return { ...this.#ms };
  }
}
