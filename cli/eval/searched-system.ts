import type { Question } from '../../evaluation/read-questions.ts';
import type { Run } from '../../evaluation/run.ts';

/** What a system of `trawl eval` found. */
export interface SearchedSystem {
  readonly name: string;
  /** What it is, for people: the index with its mode, the run file. */
  readonly what: string;
  readonly run: Run;
  /** Whether its passages have titles and texts. A run file has only ids. */
  readonly hasTexts: boolean;
  /** Question id → why its search failed. These questions are left out of the metrics. */
  readonly failed: ReadonlyMap<string, string>;
  /** Remarks on what does not fit. */
  readonly notes: readonly string[];
}

/** What all systems are asked. */
export interface Asked {
  readonly questions: readonly Question[];
  /** Passages per question. */
  readonly k: number;
  /** Ids of the relevant passages. */
  readonly gold: ReadonlySet<string>;
  readonly signal: AbortSignal;
  note(text: string): void;
}
