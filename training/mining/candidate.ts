import type { MinedPassage } from './mined-query.ts';

/** A passage of the raw list of a query. */
export interface Candidate extends MinedPassage {
  readonly rank: number;
}

/**
 * Why a candidate was rejected as a negative. A candidate has one reason, the first in this order.
 *
 * - `positive`: it is a positive of the query, by id.
 * - `sibling`: it is a positive of another query with the same question or the same text, by id.
 * - `copy`: its text without the title equals the text of a positive, its own or a sibling's, but for case, quotes and spaces.
 * - `near_duplicate`: it shares most of its words in sequence with such a positive.
 * - `query`: it is the question or the query itself.
 * - `answer`: it has a golden answer.
 * - `repeated`: it is a copy or near-duplicate of a better candidate, or of a passage before the range of ranks.
 * - `max_score`, `min_score`, `absolute_margin`, `relative_margin`: its score.
 */
export const DROP_REASONS = [
  'positive',
  'sibling',
  'copy',
  'near_duplicate',
  'query',
  'answer',
  'repeated',
  'max_score',
  'min_score',
  'absolute_margin',
  'relative_margin',
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export interface DroppedCandidate {
  readonly candidate: Candidate;
  readonly reason: DropReason;
}
