import type { Refusal } from './gates.ts';
import type { Journal, Measures, Trial } from './records.ts';

/** What became of an iteration. */
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
  /** Null before the index is built. */
  readonly sameCorpus: boolean | null;
  /** Null if none was asked for. */
  readonly trial: Trial | null;
  readonly measures: Measures | null;
  readonly refusals: readonly Refusal[];
  /** URLs of the servers that answer with it. */
  readonly servers: readonly string[];
  /** Numbers of the iterations whose files were removed. */
  readonly removed: readonly number[];
}
