import type { JsonObject } from './read-items.ts';

export interface Search {
  readonly query: string;
  /** The text that was searched: the sub-query, or `question [SEP] query`. */
  readonly searchedText: string;
  /**
   * The passages as the agent got them, best first. `id`: the id in the corpus; in a recorded call the row, if the passage has no id.
   * `contents`: undefined in recorded calls, which have no texts.
   */
  readonly shown: readonly { readonly id: string; readonly contents: string | undefined }[];
  /** The turn, from 1. Several queries may have the same turn. */
  readonly turn: number;
  /** Whether the query was truncated to the token limit. Undefined if the file does not say it. */
  readonly truncated: boolean | undefined;
}

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
  readonly searches: readonly Search[];
  /** What else the file has: the agent's text (`prompt`), its answer (`pred`), metrics. Empty for recorded calls. */
  readonly output: JsonObject;
  readonly place: string;
}

/** An index generation that answered a query, and where the first such query stands. */
export interface RecordedGeneration {
  readonly generation: string;
  readonly file: string;
  readonly line: number;
}

export interface OpenTrajectories {
  /** Changes with the content of the files. */
  readonly sha256: string;
  /** The index generations that answered recorded queries, at most 10; undefined for files without generations. */
  readonly generations?: readonly RecordedGeneration[];
  /** Leaves the first `skip` trajectories out. `onShare` is called with the share of the input that was read. */
  read(skip: number, onShare: (share: number) => void): AsyncGenerator<Trajectory, void>;
}
