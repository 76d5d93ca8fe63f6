/** Milliseconds that this process spent in each stage. */
export interface StageTimes {
  readonly scan: number;
  /** Only in updates. */
  readonly compare?: number;
  readonly read: number;
  readonly encode: number;
  /** Only with precomputed vectors. */
  readonly vectors?: number;
  /** Only with inverted indexes. */
  readonly words?: number;
  readonly finish: number;
}

/** Sums the time of each stage. A stage may be started several times: `encode` and `finish` run once per shard. */
export class StageClock {
  readonly #ms: { -readonly [Stage in keyof StageTimes]: number } = { scan: 0, read: 0, encode: 0, finish: 0 };
  #stage: keyof StageTimes | undefined;
  #since = 0;

  start(stage: keyof StageTimes): void {
    if (stage === this.#stage) return;
    this.stop();
    this.#stage = stage;
    this.#since = performance.now();
  }

  /** Ends the current stage. Returns the times of all stages. */
  stop(): StageTimes {
    const stage = this.#stage;
    if (stage !== undefined) this.#ms[stage] = (this.#ms[stage] ?? 0) + performance.now() - this.#since;
    this.#stage = undefined;
    return { ...this.#ms };
  }
}
