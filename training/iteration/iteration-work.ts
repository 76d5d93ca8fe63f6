import type { Refusal } from './gates.ts';
import type { Journal, Measures, Trial } from './records.ts';

/** The steps before an iteration is published, in this order. */
export const ITERATION_STEPS = ['model', 'triage', 'index', 'measures'] as const;
export type IterationStep = (typeof ITERATION_STEPS)[number];

/** Where a step finds what it needs and writes its result. All folders are absolute. */
export interface StepFolders {
  readonly model: string;
  /** Vectors of the trial, from which a killed one resumes. */
  readonly triage: string;
  readonly index: string;
  readonly base: string;
}

/**
 * The work of the steps. Each may be killed at any moment and is called again then; if its result is complete already, it only
 * describes it.
 */
export interface IterationWork {
  model(folders: StepFolders, journal: Journal): Promise<NonNullable<Journal['model']>>;
  /** Absent: the index is built without a trial. */
  readonly triage?: {
    run(folders: StepFolders, journal: Journal): Promise<Trial>;
    /** Whether a recorded trial is the one that `run` would give for the same index. */
    isTried(trial: Trial): boolean;
  };
  index(folders: StepFolders, journal: Journal): Promise<NonNullable<Journal['index']>>;
  measure(folders: StepFolders, journal: Journal): Promise<Measures>;
  /** Whether recorded measures are those that `measure` would give. */
  isMeasured(measures: Measures): boolean;
}

export interface IterationSummary {
  readonly number: number;
  /** `stopped`: after the step `until`; `current`: it was published before, and nothing was to be done. */
  readonly state: 'published' | 'refused' | 'stopped' | 'current';
  readonly index: string;
  readonly generation: string | null;
  readonly model: string | null;
  /** The iteration that was served before. */
  readonly base: number | null;
  /** Settings in which the encoder differs from the previous index's encoder, in words. */
  readonly changes: readonly string[];
  /** What the encoder has in place of the settings of the model's folder. Null before the model is made. */
  readonly settings: Pick<NonNullable<Journal['model']>, 'precision' | 'overrides'> | null;
  readonly sameCorpus: boolean | null;
  readonly trial: Trial | null;
  readonly measures: Measures | null;
  readonly refusals: readonly Refusal[];
  /** URLs of the servers that answer with it. */
  readonly servers: readonly string[];
  readonly removed: readonly number[];
}
