/** A candidate of a round with its utilities; one of them may be missing, then the other decides alone. */
export interface JudgedCandidate {
  readonly row: number;
  /** 0 or 1. */
  readonly em: number | undefined;
  /** The judge's number / 100. */
  readonly local: number | undefined;
}

export interface RuleSettings {
  /** Lowest local utility of a positive, 0 to 1. */
  readonly threshold: number;
  /** Rows of a round at most; each has another positive. */
  readonly positives: number;
  /** Passages of a row: a positive and the negatives. */
  readonly groupSize: number;
}

/** The constants of Agentic-R's step 4. */
export const AGENTIC_R_RULE: RuleSettings = { threshold: 0.6, positives: 3, groupSize: 16 };

/** A round in training, or why it is not: the first candidate has `em` 0, a utility below the threshold, or too few others. */
type RuleOutcome =
  | { readonly positives: readonly JudgedCandidate[]; readonly negatives: readonly JudgedCandidate[] }
  | 'not-correct'
  | 'below-threshold';

/**
 * Splits the candidates of a round by the rule of Agentic-R's step 4. They are sorted by `em`, then by local utility, both descending;
 * ties keep the order of retrieval. If the first is correct and its local utility reaches the threshold, it and all that equal it in
 * both numbers are positives. All others are negatives, also those that are correct with a lower local utility.
 */
export function splitCandidates(candidates: readonly JudgedCandidate[], { threshold }: RuleSettings): RuleOutcome {
  const sorted = [...candidates].sort((a, b) => (b.em ?? 0) - (a.em ?? 0) || (b.local ?? 0) - (a.local ?? 0));
  const [best] = sorted;
  if (best === undefined || best.em === 0) return 'not-correct';
  if (best.local !== undefined && best.local < threshold) return 'below-threshold';
  const equalsBest = ({ em, local }: JudgedCandidate): boolean => em === best.em && local === best.local;
  return { positives: sorted.filter(equalsBest), negatives: sorted.filter((candidate) => !equalsBest(candidate)) };
}
