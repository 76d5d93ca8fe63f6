import type { Judgements } from '../judgements.ts';
import type { Question } from '../read-questions.ts';
import type { RankedPassage, Run } from '../run.ts';

/** What a system of `trawl eval` found. */
export interface SearchedSystem {
  readonly name: string;
  /** What it is, for people: the index with its mode, the run file. */
  readonly what: string;
  readonly run: Run;
  /** The lists of the questions with several queries, or none; undefined for a run file. */
  readonly lists?: ReadonlyMap<string, readonly (readonly RankedPassage[])[]>;
  /** Whether its passages have ids as the judgements. */
  readonly hasIds: boolean;
  /** Whether its passages have titles and texts. A run file has only ids. */
  readonly hasTexts: boolean;
  /**
   * Whether it has none of the relevant passages: an index whose ids are others, a run or a server none of whose passages is relevant to
   * any question. The judgements are probably those of another corpus.
   */
  readonly lacksGold?: boolean;
  /** Question id → why its search failed. These questions are left out of the metrics of all systems. */
  readonly failed: ReadonlyMap<string, string>;
  /** Of a server. */
  readonly server?: ServerReport;
  /** Remarks on what does not fit. */
  readonly notes: readonly string[];
}

/** The questions that no system failed to answer: systems are measured and compared over the same questions. */
export function answeredByAll(
  questions: readonly Question[],
  systems: readonly Pick<SearchedSystem, 'failed'>[],
): readonly Question[] {
  return questions.filter(({ id }) => !systems.some(({ failed }) => failed.has(id)));
}

/** By what the passages of a server are matched with judgements: its ids, or the texts of the relevant passages in a corpus. */
export type MatchedBy = 'id' | 'text';

/** How a server was asked and how fast it answered. */
export interface ServerReport {
  readonly dialect: string;
  /** Null: not at all, only titles and answers count. */
  readonly matchedBy: MatchedBy | null;
  readonly concurrency: number;
  readonly queriesPerRequest: number;
  readonly requests: number;
  /** Tries beyond the first, after 429, 503 and lost connections. */
  readonly repeated: number;
  /** Of the requests that were answered; null without any. */
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number } | null;
  /** Questions of which all queries were answered. */
  readonly questionsPerSecond: number;
  /** Reason → failed searches. */
  readonly failures: Readonly<Record<string, number>>;
}

/** What all systems are asked. */
export interface Asked {
  readonly questions: readonly Question[];
  readonly judgements: Judgements;
  /** Passages per question that count. */
  readonly k: number;
  /** The id of a query's question, whose passage does not count; undefined: all passages count. */
  readonly ownId: ((id: string) => string) | undefined;
  /** Ids of the relevant passages. */
  readonly gold: ReadonlySet<string>;
  readonly signal: AbortSignal;
  note(text: string): void;
}
