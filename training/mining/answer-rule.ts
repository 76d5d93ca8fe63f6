import { answerMatcher } from '../../src/search/answer-match.ts';
import { foldedText } from './folded-text.ts';

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Answers that occur in passages of any subject. */
const CLOSED = new Set(['yes', 'no', 'true', 'false']);

/**
 * Whether an answer's occurrence in a passage says anything. It does not for yes and no, true and false, numbers (years, counts,
 * dates in digits), single letters, and answers without a letter or digit.
 */
function canMatch(answer: string): boolean {
  const words = answer.normalize('NFKC').toLowerCase().match(WORD) ?? [];
  if (words.every((word) => /^\p{N}+$/u.test(word))) return false;
  if (words.length > 1) return true;
  return [...words[0]!].length > 1 && !CLOSED.has(words[0]!);
}

export interface AnswerRule {
  /** Whether a passage has one of the answers by DPR's rule (`answer-match.ts`), as they are written or folded (`folded-text.ts`). */
  readonly matches: (passage: string) => boolean;
  /** Answers whose occurrence says nothing, and that were not looked for. */
  readonly undecidable: number;
}

export function answerRule(answers: readonly string[]): AnswerRule {
  const usable = answers.filter(canMatch);
  const folded = usable.map(foldedText);
  const isFolded = folded.some((answer, i) => answer !== usable[i]);
  const [asWritten, inFolded] = [answerMatcher(usable), answerMatcher(folded)];
  const matches = (passage: string): boolean => {
    if (asWritten(passage)) return true;
    const text = foldedText(passage);
    return (isFolded || text !== passage) && inFolded(text);
  };
  return { matches, undecidable: answers.length - usable.length };
}
