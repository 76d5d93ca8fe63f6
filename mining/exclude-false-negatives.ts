import type { AnswerRule } from './answer-rule.ts';
import type { Candidate, DroppedCandidate, DropReason } from './candidate.ts';
import { comparableText, contentHash } from './comparable-text.ts';
import type { MinedPassage } from './mined-query.ts';
import type { MiningQuery } from './mining-query.ts';
import { NearDuplicates, shinglesOf } from './near-duplicates.ts';

export interface ExclusionInput {
  readonly query: MiningQuery;
  readonly positives: readonly MinedPassage[];
  /** Positives of other queries with the same question or text. */
  readonly siblings: readonly MinedPassage[];
  /** Ids of the positives, also of those that the index does not have. */
  readonly positiveIds: ReadonlySet<string>;
  readonly siblingIds: ReadonlySet<string>;
  /** Best first. */
  readonly candidates: readonly Candidate[];
  readonly answers: AnswerRule;
  /** Similarity from which two texts are near-duplicates, above 0 and up to 1; null: no two are. */
  readonly nearDuplicate: number | null;
}

/** Drops the candidates that may be relevant, by the rules that need no score. The others stay in their order. */
export function excludeFalseNegatives(input: ExclusionInput): {
  readonly kept: readonly Candidate[];
  readonly dropped: readonly DroppedCandidate[];
} {
  const { query, positives, siblings, positiveIds, siblingIds, answers, nearDuplicate } = input;
  const relevant = new SeenTexts(nearDuplicate);
  for (const passage of [...positives, ...siblings]) relevant.add(passage);
  const better = new SeenTexts(nearDuplicate);
  const queryTexts = new Set([query.question, query.query ?? ''].map(comparableText));
  const rows = new Set(positives.map(({ row }) => row));
  const siblingRows = new Set(siblings.map(({ row }) => row));
  const reasonOf = (candidate: Candidate): DropReason | undefined => {
    if (positiveIds.has(candidate.id) || rows.has(candidate.row)) return 'positive';
    if (siblingIds.has(candidate.id) || siblingRows.has(candidate.row)) return 'sibling';
    if (relevant.hasCopy(candidate)) return 'copy';
    if (relevant.hasNearDuplicate(candidate)) return 'near_duplicate';
    if (queryTexts.has(comparableText(candidate.text)) || queryTexts.has(comparableText(candidate.contents)))
      return 'query';
    if (answers.matches(candidate.contents)) return 'answer';
    if (better.hasCopy(candidate) || better.hasNearDuplicate(candidate)) return 'repeated';
    better.add(candidate);
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

type Texts = Pick<MinedPassage, 'text' | 'contents'>;

/** Texts to find copies and near-duplicates of. Titles are not compared. */
class SeenTexts {
  readonly #threshold: number | null;
  readonly #hashes = new Set<string>();
  readonly #shingles = new NearDuplicates();

  constructor(threshold: number | null) {
    this.#threshold = threshold;
  }

  add(passage: Texts): void {
    this.#hashes.add(contentHash(passage));
    if (this.#threshold !== null) this.#shingles.add(shinglesOf(bodyOf(passage)));
  }

  hasCopy(passage: Texts): boolean {
    return this.#hashes.has(contentHash(passage));
  }

  hasNearDuplicate(passage: Texts): boolean {
    return this.#threshold !== null && this.#shingles.similarity(shinglesOf(bodyOf(passage))) >= this.#threshold;
  }
}

function bodyOf({ text, contents }: Texts): string {
  return text.trim() === '' ? contents : text;
}
