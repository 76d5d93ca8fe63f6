import { comparableText } from '../../src/base/comparable-text.ts';
import type { KnownPassage } from './passage-texts.ts';
import type { JudgedCandidate } from './training-rule.ts';

/** Rules that take candidates out of the negatives. Agentic-R has none of them. */
export const EXCLUSION_RULES = ['correct', 'duplicate', 'sibling'] as const;
export type ExclusionRule = (typeof EXCLUSION_RULES)[number];

export interface Exclusions {
  /** Leave out candidates with which the agent answered correctly (`em` 1). */
  readonly correct: boolean;
  /** Leave out passages with the text of a positive, and with `siblings` of a sibling's positive; by row. */
  readonly duplicatesBy: ReadonlyMap<number, KnownPassage> | undefined;
  /** Leave out the positives of other rounds and trajectories of the same question. */
  readonly siblings: SiblingPositives | undefined;
}

/** The positives of all rounds, by the comparable text of their question. */
export class SiblingPositives {
  readonly #rows = new Map<string, Set<number>>();
  readonly #texts = new Map<string, Set<string>>();

  /** @param passages the texts of the passages, if copies are to be found. */
  add(
    question: string,
    positives: readonly JudgedCandidate[],
    passages: ReadonlyMap<number, KnownPassage> | undefined,
  ): void {
    const key = keyOf(question);
    const rows = this.#rows.get(key) ?? new Set<number>();
    const texts = this.#texts.get(key) ?? new Set<string>();
    for (const { row } of positives) {
      rows.add(row);
      const known = passages?.get(row);
      if (known !== undefined) texts.add(known.textHash);
    }
    this.#rows.set(key, rows);
    this.#texts.set(key, texts);
  }

  hasRow(question: string, row: number): boolean {
    return this.#rows.get(keyOf(question))?.has(row) === true;
  }

  hasText(question: string, textHash: string): boolean {
    return this.#texts.get(keyOf(question))?.has(textHash) === true;
  }
}

/** A question of nothing but quotes and spaces is compared as it is. */
function keyOf(question: string): string {
  return comparableText(question) || question;
}

/** The negatives that no rule excludes, and how many each rule took; the first rule that applies counts. */
export function withoutExcluded(
  question: string,
  { positives, negatives }: { positives: readonly JudgedCandidate[]; negatives: readonly JudgedCandidate[] },
  { correct, duplicatesBy, siblings }: Exclusions,
): { readonly kept: readonly JudgedCandidate[]; readonly excluded: Readonly<Record<ExclusionRule, number>> } {
  const excluded = { correct: 0, duplicate: 0, sibling: 0 };
  const positiveTexts = new Set(positives.map(({ row }) => duplicatesBy?.get(row)?.textHash));
  const ruleFor = ({ row, em }: JudgedCandidate): ExclusionRule | undefined => {
    if (correct && em === 1) return 'correct';
    const known = duplicatesBy?.get(row);
    if (known !== undefined && positiveTexts.has(known.textHash)) return 'duplicate';
    if (siblings === undefined) return undefined;
    const isSibling =
      siblings.hasRow(question, row) || (known !== undefined && siblings.hasText(question, known.textHash));
    return isSibling ? 'sibling' : undefined;
  };
  const kept = negatives.filter((candidate) => {
    const rule = ruleFor(candidate);
    if (rule !== undefined) excluded[rule] += 1;
    return rule === undefined;
  });
  return { kept, excluded };
}
