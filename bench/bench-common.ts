/** What most measurements are given. */
export interface BenchCommon {
  readonly threads: number;
  /** How often each engine, or each engine and setting, is measured. */
  readonly runs: number;
  readonly seed: number;
  /** Folder of files that later runs reuse, Python environments among them. */
  readonly cache: string;
  /** Folder of temporary files. */
  readonly scratch: string;
  /** A Python interpreter in place of the one of the baselines' environment. */
  readonly python: string | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}
