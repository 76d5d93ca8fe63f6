import { type ExpectedSearch, expectedSearch, type SearchedRows } from '../../src/expected-speed/expected-search.ts';
import type { SpeedTrial } from '../../src/expected-speed/speed-trial.ts';

/** A machine for which times are computed. */
export interface ComputedMachine {
  readonly cores: number;
  /** Bytes a second that its cores together read from memory. */
  readonly readBytesPerS: number;
}

/**
 * Expected times of searches on another machine whose cores are those of the trial: the processor's time of the trial divided by the
 * multiple of its threads, or the time of reading the bytes once, if that is longer. The fixed time of a search stays. All that
 * a search reads must lie in memory.
 */
export function computedSearches(
  trial: SpeedTrial,
  searched: SearchedRows,
  { cores, readBytesPerS }: ComputedMachine,
): ExpectedSearch[] {
  const share = trial.threads / cores;
  const scaled = (costs: SpeedTrial['codes']) => costs.map((cost) => ({ ...cost, msPerRow: cost.msPerRow * share }));
  const prefilter = trial.prefilter === null ? null : scaled(trial.prefilter);
  return expectedSearch({ ...trial, threads: cores, readBytesPerS, codes: scaled(trial.codes), prefilter }, searched);
}
