/**
 * Answers in passages, by the rule of DPR's evaluation: both are cut into tokens, and the answer's tokens must come
 * in the passage in one piece. Tokens are runs of letters, digits and marks, or any other single character that is no
 * space or control character, after NFD normalisation and in lower case. So "U.S." matches "the U.S. dollar" and "art"
 * does not match "party". Unlike in DPR, an answer without any token matches nothing.
 */

const TOKEN = /[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]/gu;

/** No token holds a control character, so a joined list can be searched as one string. */
const SEPARATOR = '\u0000';

/** A set of answers, ready to be looked for in many passages. */
export function answerMatcher(answers: readonly string[]): (passage: string) => boolean {
  const needles = answers.map(joinedTokens).filter((needle) => needle !== SEPARATOR);
  if (needles.length === 0) return () => false;
  return (passage) => {
    const haystack = joinedTokens(passage);
    return needles.some((needle) => haystack.includes(needle));
  };
}

/** 1 if one of the first k passages holds one of the answers, else 0. Passages are texts, best first. */
export function answerHitAt(passages: readonly string[], answers: readonly string[], k: number): number {
  return passages.slice(0, k).some(answerMatcher(answers)) ? 1 : 0;
}

function joinedTokens(text: string): string {
  let joined = SEPARATOR;
  for (const [token] of text.normalize('NFD').matchAll(TOKEN)) joined += token.toLowerCase() + SEPARATOR;
  return joined;
}
