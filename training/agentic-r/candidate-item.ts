/** A round of a trajectory in Agentic-R's file of candidates (step 2). */
export interface CandidateRound {
  /** From 1. */
  readonly round_index: number;
  /** The agent's text up to and with this search; empty where only calls were recorded. */
  readonly reasoning_context: string;
  readonly current_query: string;
  /** Rows of the index, best first. */
  readonly candidate_passage_ids: readonly number[];
}

/** An item of that file. */
export interface CandidateItem {
  readonly id: string;
  readonly question: string;
  readonly golden_answers: readonly string[];
  readonly output: Readonly<Record<string, unknown>>;
  readonly trajectory: readonly CandidateRound[];
}

/** Candidates of each search in Agentic-R. */
export const DEFAULT_CANDIDATES = 20;
