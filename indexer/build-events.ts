/**
 * The stages of a build, in order.
 * - `scan`: hashes the corpus files and counts their lines.
 * - `compare`, only in updates: compares the passages of corpus and index.
 * - `read`: writes passages to the passage files.
 * - `encode`: embeds passages; or `vectors`: reads precomputed vectors.
 * - `words`: makes inverted indexes for BM25.
 * - `finish`: syncs files to the disk and joins the shards.
 */
const BUILD_STAGES = ['scan', 'compare', 'read', 'encode', 'vectors', 'words', 'finish'] as const;
export type BuildStage = (typeof BUILD_STAGES)[number];

/** Progress of a build. The command line shows it as a bar, log lines or JSON. */
export interface BuildProgress {
  readonly stage: BuildStage;
  /** Passages that have completed this stage, including those of earlier runs of the same build. */
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
