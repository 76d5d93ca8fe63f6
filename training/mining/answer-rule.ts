import { answerMatcher } from '../../src/search/answer-match.ts';

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

export type AnswerRule = ReturnType<typeof answerRule>;

export function answerRule(answers: readonly string[]) {
  const usable = answers.filter(canMatch);
  const folded = usable.map(foldedText);
  const isFolded = folded.some((answer, i) => answer !== usable[i]);
  const [asWritten, inFolded] = [answerMatcher(usable), answerMatcher(folded)];
  /** Whether a passage has one of the answers by DPR's rule (`answer-match.ts`), as they are written or folded (`foldedText`). */
  const matches = (passage: string): boolean => {
    if (asWritten(passage)) return true;
    const text = foldedText(passage);
    return (isFolded || text !== passage) && inFolded(text);
  };
  /** `undecidable`: answers whose occurrence says nothing, and that were not looked for. */
  return { matches, undecidable: answers.length - usable.length };
}

const APOSTROPHES = /[‘’‚‛′`´ʹʼ＇]/gu;
const QUOTES = /[“”„‟″«»＂]/gu;
const DASHES = /[\p{Pd}−]/gu;
/** A character of a script that is written without spaces between words, with its marks. */
const UNSPACED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}]\p{M}*/gu;

/** A text in which answers are looked for whatever its typography: one kind of quotes and dashes, NFKC, unspaced scripts by characters. */
function foldedText(text: string): string {
  // The quotes go first, because NFKC makes a space and a combining accent of some.
  const folded = text.replace(APOSTROPHES, "'").replace(QUOTES, '"').replace(DASHES, '-');
  return byCharacters(folded.normalize('NFKC'));
}

/** Puts spaces around each character of Chinese, Japanese and Thai, so that it is a word of its own. */
export function byCharacters(text: string): string {
  return text.replace(UNSPACED, ' $& ');
}
