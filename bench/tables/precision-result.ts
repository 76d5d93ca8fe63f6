/** What `npm run reproduce -- precision` writes: precisions of one encoder for passages and queries, compared with float32. */
export interface PrecisionResult {
  readonly format: 'trawl-precisions';
  readonly version: 2;
  /** The program that measured it. */
  readonly trawl: string;
  readonly date: string;
  readonly rows: readonly {
    readonly set: string;
    /** The precision of the passages, and that of the queries. */
    readonly passages: string;
    readonly queries: string;
    readonly questions: number;
    /** Means over the questions, by name: `recall@10`. */
    readonly metrics: Readonly<Record<string, number>>;
    /** Share of the ten passages found with both in float32 that are found, mean over the questions. Null: not measured. */
    readonly overlap10: number | null;
    /** Of recall@10 to float32: mean, 95 % interval, questions that are better and worse. Null for float32. */
    readonly difference: {
      readonly mean: number;
      /** Null if all questions differ equally, as without any difference. */
      readonly low: number | null;
      readonly high: number | null;
      readonly better: number;
      readonly worse: number;
    } | null;
  }[];
}
