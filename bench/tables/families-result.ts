/** What `npm run reproduce -- families` writes: encoders with random weights beside sentence-transformers. */
export interface FamiliesResult {
  readonly format: 'trawl-families';
  readonly version: 1;
  /** The program that measured it. */
  readonly trawl: string;
  readonly date: string;
  readonly processor: string;
  readonly threads: number;
  readonly runs: number;
  readonly passages: number;
  /** Load averages of a minute before and after. More than the threads: the machine had other work. */
  readonly load: { readonly before: number; readonly after: number };
  readonly rows: readonly {
    readonly family: string;
    /** The model whose width it has, and its layers. */
    readonly shape: string;
    readonly engine: string;
    readonly precision: string;
    readonly tokensPerPassage: number;
    /** Of all passages, by the clock. */
    readonly medianMs: number;
    /** Times as many passages per second as sentence-transformers; null for itself. */
    readonly ratioToBaseline: number | null;
    readonly queryP50Ms: number;
    readonly queryRatioToBaseline: number | null;
    /** The smallest to the vectors of sentence-transformers; null for itself. */
    readonly cosineToBaseline: number | null;
  }[];
}
