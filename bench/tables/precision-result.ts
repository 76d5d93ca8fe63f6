/** What `npm run reproduce -- precision` writes: precisions of one encoder, compared with float32 over the same questions. */
export interface PrecisionResult {
  readonly format: 'trawl-precisions';
  readonly version: 1;
  /** The program that measured it. */
  readonly trawl: string;
  readonly date: string;
  readonly rows: readonly {
    readonly set: string;
    /** Of passages and queries. */
    readonly precision: string;
    readonly questions: number;
    /** Means over the questions, by name: `recall@10`. */
    readonly metrics: Readonly<Record<string, number>>;
    /** Of recall@10 to float32: mean, 95 % interval, questions that are better and worse. Null for float32. */
    readonly difference: {
      readonly mean: number;
      readonly low: number;
      readonly high: number;
      readonly better: number;
      readonly worse: number;
    } | null;
  }[];
}
