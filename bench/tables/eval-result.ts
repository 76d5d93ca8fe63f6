/** Evaluations of one table: what `trawl eval --json` printed for each of its rows. */
export interface EvalResult {
  readonly format: 'trawl-evaluations';
  readonly version: 1;
  /** The program that printed it. */
  readonly trawl: string;
  readonly date: string;
  readonly rows: readonly {
    /** The first column of the table. */
    readonly name: string;
    /** The arguments of `trawl eval` behind the index. */
    readonly arguments: string;
    readonly queries: number;
    readonly metrics: Readonly<Record<string, number>>;
  }[];
}
