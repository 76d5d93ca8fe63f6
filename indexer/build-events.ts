/**
 * The stages of a build, in order. `scan`: checksums and lines of the corpus; `read`: passages into the passage files;
 * `encode`: vectors; `vectors`: in its place, vectors that are there already; `finish`: what is complete is made durable and joined.
 */
export const BUILD_STAGES = ['scan', 'read', 'encode', 'vectors', 'finish'] as const;
export type BuildStage = (typeof BUILD_STAGES)[number];

/** What a build says of its progress; the command line turns it into a bar, log lines or JSON. */
export interface BuildProgress {
  readonly stage: BuildStage;
  /** Passages through this stage, those of earlier runs of the same build included. */
  readonly passages: number;
  /** Passages there are; unknown while reading. */
  readonly totalPassages?: number;
  /** Share of the corpus read, 0 to 1, while scanning and reading. */
  readonly readShare?: number;
  /** Tokens embedded by this process so far, while encoding. */
  readonly tokens?: number;
  /** The shard at hand, while encoding: its number from 0, and how many there are. */
  readonly shard?: number;
  readonly shards?: number;
}

export type OnProgress = (progress: BuildProgress) => void;
