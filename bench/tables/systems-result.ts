/** What scripts/evaluation-table.mjs writes: systems that answered the same questions, compared with the first of their set. */
export interface SystemsResult {
  readonly rows: readonly {
    readonly set: string;
    readonly system: string;
    readonly questions: number;
    /** Means over the questions, by name: `recall@10`. */
    readonly metrics: Readonly<Record<string, number>>;
    /** The 95 % interval of recall@10. */
    readonly recallInterval: { readonly low: number; readonly high: number };
    /** Of the paired test of recall@10 against the first system of the set, which has null. */
    readonly p: number | null;
  }[];
}
