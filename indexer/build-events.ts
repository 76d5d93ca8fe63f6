/** The stages of a build, in order. */
export const BUILD_STAGES = ['read', 'encode', 'finish'] as const;
export type BuildStage = (typeof BUILD_STAGES)[number];

/** What a build says of its progress; the command line turns it into a bar, log lines or JSON. */
export interface BuildProgress {
  readonly stage: BuildStage;
  /** Passages through this stage. */
  readonly passages: number;
  /** Passages there are; unknown while reading. */
  readonly totalPassages?: number;
  /** Share of the corpus's bytes read, 0 to 1, while reading. */
  readonly readShare?: number;
  /** Tokens embedded so far, while encoding. */
  readonly tokens?: number;
}

export type OnProgress = (progress: BuildProgress) => void;
