import type { KnownPassage } from './passage-texts.ts';
import type { JudgedCandidate } from './training-rule.ts';

/** Rules that take candidates out of the negatives. Agentic-R has none of them. */
export const EXCLUSION_RULES = ['correct', 'duplicate', 'sibling'] as const;
export type ExclusionRule = (typeof EXCLUSION_RULES)[number];

export interface Exclusions {
  /** Leave out candidates with which the agent answered correctly (`em` 1). */
  readonly correct: boolean;
  /** Leave out passages with the text of a positive; by row. */
  readonly duplicatesBy: ReadonlyMap<number, KnownPassage> | undefined;
  /** Leave out the positives of other rounds and trajectories of the same question; by question. */
  readonly positivesOf: ReadonlyMap<string, ReadonlySet<number>> | undefined;
}

/** The negatives that no rule excludes, and how many each rule took; the first rule that applies counts. */
export function withoutExcluded(
  question: string,
  { positives, negatives }: { positives: readonly JudgedCandidate[]; negatives: readonly JudgedCandidate[] },
  { correct, duplicatesBy, positivesOf }: Exclusions,
): { readonly kept: readonly JudgedCandidate[]; readonly excluded: Readonly<Record<ExclusionRule, number>> } {
  const excluded = { correct: 0, duplicate: 0, sibling: 0 };
  const positiveTexts = new Set(positives.map(({ row }) => duplicatesBy?.get(row)?.textHash));
  const ruleFor = ({ row, em }: JudgedCandidate): ExclusionRule | undefined => {
    if (correct && em === 1) return 'correct';
    const known = duplicatesBy?.get(row);
    if (known !== undefined && positiveTexts.has(known.textHash)) return 'duplicate';
    return positivesOf?.get(question)?.has(row) === true ? 'sibling' : undefined;
  };
  const kept = negatives.filter((candidate) => {
    const rule = ruleFor(candidate);
    if (rule !== undefined) excluded[rule] += 1;
    return rule === undefined;
  });
  return { kept, excluded };
}
