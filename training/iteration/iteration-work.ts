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
  /** The index that is served now. */
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
