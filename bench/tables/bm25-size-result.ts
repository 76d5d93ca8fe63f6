import type { MachineFacts } from '../environment.ts';
import type { Bm25Record } from '../lexical/bench-bm25.ts';

/** What `npm run reproduce -- bm25-size` writes: an index of words of as many passages as wiki-18 has. */
export interface Bm25SizeResult {
  readonly environment: MachineFacts;
  readonly rows: number;
  /** Of the JSON lines. */
  readonly corpusBytes: number;
  readonly build: {
    readonly seconds: number;
    /** Load averages before and after. More than one for each core: the machine had other work. */
    readonly load: { readonly before: number; readonly after: number };
    /** By the clock, of each stage. */
    readonly stageMs: Readonly<Record<string, number>>;
    readonly peakBytes: number;
    readonly shards: number;
    readonly passageBytes: number;
  };
  /** Of `trawl bench bm25 --index`. */
  readonly records: readonly Bm25Record[];
}
