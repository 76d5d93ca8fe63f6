import type { JsonObject } from './read-items.ts';

/** A passage as the agent got it. */
export interface ShownPassage {
  /** The id in the corpus; in a recorded call the row, if the passage has no id. */
  readonly id: string;
  /** Undefined in recorded calls, which have no texts. */
  readonly contents: string | undefined;
}

/** One query of a trajectory, with what was found. */
export interface Search {
  /** The agent's sub-query. */
  readonly query: string;
  /** The text that was searched: the sub-query, or `question [SEP] query`. */
  readonly searchedText: string;
  /** Best first. */
  readonly shown: readonly ShownPassage[];
  /** The turn, from 1. Several queries may have the same turn. */
  readonly turn: number;
  /** Whether the query was truncated to the token limit. Undefined if the file does not say it. */
  readonly truncated: boolean | undefined;
}

/** What an agent did for one question. */
export interface Trajectory {
  readonly id: string;
  /** Undefined if it is not known, in recorded calls. */
  readonly question: string | undefined;
  /**
   * Id of the question, or of the trajectory in Agentic-R's files, where a question has one trajectory. Undefined if it is not known, in
   * recorded calls.
   */
  readonly questionId: string | undefined;
  /** The data set of the question, if the file names it. */
  readonly dataset?: string;
  readonly goldenAnswers: readonly string[];
  /** In their order. */
  readonly searches: readonly Search[];
  /** What else the file has: the agent's text (`prompt`), its answer (`pred`), metrics. Empty for recorded calls. */
  readonly output: JsonObject;
  /** Where the trajectory stands, for messages. */
  readonly place: string;
}
