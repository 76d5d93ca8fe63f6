import type { MachineFacts } from '../environment.ts';

/** What `npm run check -- trials --out FILE` writes. */
export interface TrialsResult {
  readonly machine: MachineFacts;
  /** Of each trial. */
  readonly seconds: number;
  readonly connections: number;
  readonly results: readonly {
    readonly name: string;
    readonly outcome: 'passed' | 'failed' | 'skipped';
    readonly reason?: string;
    readonly counts: Readonly<Record<string, number | string>>;
    readonly faults: Readonly<Record<string, number>>;
    readonly seconds: number;
  }[];
}

/** What `npm run check -- soak --out FILE` writes. */
export interface SoakFigures {
  readonly machine: MachineFacts;
  /** What, `passed` or `failed`, and figures. */
  readonly rows: readonly (readonly [string, string, string])[];
}
