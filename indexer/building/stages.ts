/**
 * The stages of a build, in order.
 * - `scan`: hashes the corpus files and counts their lines.
 * - `compare`, only in updates: compares the passages of corpus and index.
 * - `read`: writes passages to the passage files.
 * - `encode`: embeds passages; or `vectors`: reads precomputed vectors.
 * - `words`: makes inverted indexes for BM25.
 * - `finish`: syncs files to the disk and joins the shards.
 */
export type BuildStage = 'scan' | 'compare' | 'read' | 'encode' | 'vectors' | 'words' | 'finish';

/** Progress of a build. The command line shows it as a bar, log lines or JSON. */
export interface BuildProgress {
  readonly stage: BuildStage;
  /** Passages that have completed this stage in this run and earlier runs of the same build. */
  readonly passages: number;
  /** Unknown while passages are read. */
  readonly totalPassages?: number;
  /** Share of the corpus that has been read, 0 to 1. Set in stages that read it. */
  readonly readShare?: number;
  /** Tokens that this process has embedded. Set in the stage `encode`. */
  readonly tokens?: number;
  /** Number of the current shard, from 0. Set in the stages `encode`, `vectors` and `words`. */
  readonly shard?: number;
  readonly shards?: number;
}

export type OnProgress = (progress: BuildProgress) => void;

/** Milliseconds that this process spent in each stage. A stage that the build does not have is absent. */
export interface StageTimes
  extends Readonly<Record<'scan' | 'read' | 'encode' | 'finish', number>>,
    Readonly<Partial<Record<'compare' | 'vectors' | 'words', number>>> {}

/** Sums the time of each stage. A stage may be started several times: `encode` and `finish` run once per shard. */
export class StageClock {
  readonly #ms: { -readonly [Stage in keyof StageTimes]: StageTimes[Stage] } = {
    scan: 0,
    read: 0,
    encode: 0,
    finish: 0,
  };
  #stage: BuildStage | undefined;
  #since = 0;

  start(stage: BuildStage): void {
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
