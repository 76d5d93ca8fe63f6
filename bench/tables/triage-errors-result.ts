import type { BenchTriageResult } from '../triage/bench-triage.ts';

/** What `npm run reproduce -- triage` writes: results of `trawl bench triage` over several sets. */
export interface TriageErrorsResult {
  readonly date: string;
  readonly sets: readonly ({ readonly name: string } & BenchTriageResult)[];
}
