import type { MachineFacts } from '../environment.ts';

/** What `npm run reproduce -- prepare` writes: runs of `trawl prepare` beside a Python program. */
export interface PrepareResult {
  readonly environment: MachineFacts;
  readonly runs: number;
  /** Bytes of the documents. */
  readonly bytes: number;
  readonly documents: number;
  /** Times are medians of the runs. */
  readonly rows: readonly {
    readonly program: string;
    readonly rule: string;
    readonly output: string;
    readonly threads: number;
    readonly passages: number;
    readonly seconds: number;
  }[];
}
