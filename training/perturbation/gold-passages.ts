import type { AskedQuestion } from '../../src/search/calls/retrieve-call.ts';

/** The parts of a query by which its question is found. */
export interface GoldQuery extends AskedQuestion {
  readonly query: string;
}

/** The questions whose gold passages are known. */
export interface GoldPassages {
  /** Whether a passage (the JSON text of its row) is gold for the question of a query; undefined if the question is not known. */
  of(query: GoldQuery): ((document: string) => boolean) | undefined;
}
