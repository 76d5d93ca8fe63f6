import type { StageTimings } from '../timings.ts';

/** Asks for the beginnings of texts, by the tokens of the index's tokenizer or of the one that the operator named. */
export interface CutCall {
  readonly texts: readonly string[];
  /** Most tokens of each text, ≥ 1, special tokens not counted. */
  readonly tokens: number;
  readonly signal?: AbortSignal;
}

/** The beginning of a text. */
export interface CutText {
  readonly text: string;
  /** Whether the text goes on. */
  readonly isCut: boolean;
}

export interface CutResult {
  /** One per text. Each ends with a whole word, unless the text has no white space for 100 characters there. */
  readonly texts: readonly CutText[];
  readonly timings: StageTimings;
}
