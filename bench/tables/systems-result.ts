/**
 * What `npm run reproduce -- evaluation` and scripts/evaluation-table.mjs write: systems that answered the same questions, compared with
 * the first of their set.
 */
export interface SystemsResult {
  readonly format: 'trawl-systems';
  readonly version: 1;
  /** The program that measured it. */
  readonly trawl: string;
  readonly date: string;
  readonly rows: readonly {
    readonly set: string;
    readonly system: string;
    readonly questions: number;
    /** Means over the questions, by name: `recall@10`. */
    readonly metrics: Readonly<Record<string, number>>;
    /** The 95 % interval of recall@10; null if all questions have the same. */
    readonly recallInterval: { readonly low: number; readonly high: number } | null;
    /** recall@10 minus that of the first system; null for the first, as `p` is. */
    readonly difference: number | null;
    /** Of the paired test of recall@10 against the first system of the set. */
    readonly p: number | null;
  }[];
}
