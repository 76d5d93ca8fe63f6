/** Milliseconds of this process, per stage. */
export interface StageTimes {
  readonly scan: number;
  readonly read: number;
  readonly encode: number;
  /** Absent where vectors were embedded. */
  readonly vectors?: number;
  readonly finish: number;
}

/** Sums the time of each stage; shards go back and forth between two of them. */
export class StageClock {
  readonly #ms: { -readonly [Stage in keyof StageTimes]: StageTimes[Stage] } = {
    scan: 0,
    read: 0,
    encode: 0,
    finish: 0,
  };
  #stage: keyof StageTimes | undefined;
  #since = 0;

  get stages(): StageTimes {
    return { ...this.#ms };
  }

  start(stage: keyof StageTimes): void {
    if (stage === this.#stage) return;
    this.stop();
    this.#stage = stage;
    this.#since = performance.now();
  }

  stop(): void {
    if (this.#stage !== undefined)
      this.#ms[this.#stage] = (this.#ms[this.#stage] ?? 0) + performance.now() - this.#since;
    this.#stage = undefined;
  }
}
