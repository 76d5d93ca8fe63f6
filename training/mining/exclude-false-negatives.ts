import { comparableText } from '../../src/base/comparable-text.ts';
import type { AnswerRule } from './answer-rule.ts';
import type { Candidate, DroppedCandidate, DropReason, MinedPassage, MiningQuery } from './mined-query.ts';
import { NearDuplicates, type PassageTexts, passageTexts } from './near-duplicates.ts';

export interface ExclusionInput {
  readonly query: MiningQuery;
  readonly positives: readonly MinedPassage[];
  /** Positives of other queries with the same question or text. */
  readonly siblings: readonly MinedPassage[];
  /** Ids of the positives, also of those that the index does not have. */
  readonly positiveIds: ReadonlySet<string>;
  readonly siblingIds: ReadonlySet<string>;
  /** Passages before the range of ranks: no candidates, and better than all of them. */
  readonly skipped: readonly MinedPassage[];
  readonly candidates: readonly Candidate[];
  readonly answers: AnswerRule;
  /** Similarity from which two texts are near-duplicates, above 0 and up to 1; null: no two are. */
  readonly nearDuplicate: number | null;
}

/** Drops the candidates that may be relevant, by the rules that need no score. The others stay in their order. */
export function excludeFalseNegatives(input: ExclusionInput) {
  const { query, positives, siblings, positiveIds, siblingIds, answers, nearDuplicate } = input;
  const relevant = seenTexts(nearDuplicate);
  for (const passage of [...positives, ...siblings]) relevant.add(passageTexts(passage));
  const better = seenTexts(nearDuplicate);
  for (const passage of input.skipped) better.add(passageTexts(passage));
  const queryTexts = new Set([query.question, query.query ?? ''].map(comparableText));
  const rows = new Set(positives.map(({ row }) => row));
  const siblingRows = new Set(siblings.map(({ row }) => row));
  const reasonOf = (candidate: Candidate): DropReason | undefined => {
    if (positiveIds.has(candidate.id) || rows.has(candidate.row)) return 'positive';
    if (siblingIds.has(candidate.id) || siblingRows.has(candidate.row)) return 'sibling';
    const texts = passageTexts(candidate);
    if (relevant.hasCopy(texts)) return 'copy';
    if (relevant.hasNearDuplicate(texts)) return 'near_duplicate';
    if (queryTexts.has(texts.body) || queryTexts.has(texts.whole)) return 'query';
    if (answers.matches(candidate.contents)) return 'answer';
    if (better.hasCopy(texts) || better.hasNearDuplicate(texts)) return 'repeated';
    better.add(texts);
    return undefined;
  };
  const kept: Candidate[] = [];
  const dropped: DroppedCandidate[] = [];
  for (const candidate of input.candidates) {
    const reason = reasonOf(candidate);
    if (reason === undefined) kept.push(candidate);
    else dropped.push({ candidate, reason });
  }
  return { kept, dropped };
}

/** Gathers texts to find copies and near-duplicates of. Titles are not compared. */
function seenTexts(threshold: number | null) {
  const bodies = new Set<string>();
  const seen = new NearDuplicates();
  return {
    add({ body, shingles }: PassageTexts): void {
      bodies.add(body);
      if (threshold !== null) seen.add(shingles);
    },
    hasCopy: ({ body }: PassageTexts) => bodies.has(body),
    hasNearDuplicate: ({ shingles }: PassageTexts) => threshold !== null && seen.similarity(shingles) >= threshold,
  };
}
