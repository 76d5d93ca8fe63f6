export interface BenchCommon {
  readonly threads: number;
  readonly runs: number;
  readonly seed: number;
  readonly cache: string;
  readonly scratch: string;
  readonly python: string | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchOutcome {
  /** Environment, records and omitted baselines, for `--out`. */
  readonly result: object;
  readonly records: readonly object[];
  /** The report for a terminal. */
  text(): string;
  /** Whether the case writes its result itself. */
  readonly writes?: boolean;
  /** Sentences about what failed. */
  readonly problems?: readonly string[];
}
