import type { Candidate, DroppedCandidate } from './candidate.ts';
import type { MinedPassage, MinedQuery } from './mined-query.ts';
import type { SearchedQuery } from './search-candidates.ts';
import type { StoredQuery } from './work-file.ts';

/**
 * Why a query has no row:
 * - `positive_not_found`: the index has none of its positives;
 * - `not_searchable`: the query itself cannot be searched or judged (`isOfQuery`): it is blank or too long, it has no vector, or the
 *   rerank server refuses it;
 * - `positive_without_score`: the list of a hybrid search does not have a positive, whose score is needed;
 * - `too_few_negatives`: fewer than wanted at least.
 */
export const UNMINED_REASONS = [
  'positive_not_found',
  'not_searchable',
  'positive_without_score',
  'too_few_negatives',
] as const;
export type UnminedReason = (typeof UNMINED_REASONS)[number];

/** What became of a query. */
export interface QueryOutcome {
  readonly stored: StoredQuery;
  readonly result: { readonly mined: MinedQuery } | { readonly unmined: UnminedReason };
  /** The first positive that was found. */
  readonly positive?: MinedPassage;
  /** Positives that the index does not have. */
  readonly positivesNotFound: number;
  /** Positives without any of the golden answers that can be looked for. */
  readonly positivesWithoutAnswer: number;
  readonly undecidableAnswers: number;
  readonly isCut: boolean;
  /** Candidates in the range of ranks. */
  readonly candidates: number;
  readonly dropped: readonly DroppedCandidate[];
  /** Candidates that no rule dropped. */
  readonly left: number;
}

/** A query between the exclusions and the limits on scores. */
export interface PreparedQuery {
  readonly stored: StoredQuery;
  readonly searched: SearchedQuery;
  readonly positives: readonly MinedPassage[];
  readonly kept: readonly Candidate[];
  readonly facts: Omit<QueryOutcome, 'stored' | 'result' | 'left'>;
}
