/** Where a run writes, and how it is stopped. */
export interface ReproductionRun {
  /** The JSON file to write. */
  readonly file: string;
  readonly scratch: string;
  readonly signal: AbortSignal;
}
