/**
 * Finds answers in passages, as DPR's evaluation does: a passage matches if its tokens contain the answer's tokens in
 * sequence. A token is a run of letters, digits and marks, or any other single character that is not a space or control
 * character, after NFD normalisation and in lower case. So "U.S." matches "the U.S. dollar", and "art" does not match
 * "party". Unlike in DPR, an answer without tokens matches nothing.
 */

const TOKEN = /[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]/gu;

/** Tokens contain no control characters, so joined lists can be searched as strings. */
const SEPARATOR = '\u0000';

/** Returns a function that says whether a passage contains one of the answers. */
export function answerMatcher(answers: readonly string[]): (passage: string) => boolean {
  return matcher(answers, joinedTokens, SEPARATOR);
}

/** @param nothing what is left of an answer that matches nothing. */
function matcher(
  answers: readonly string[],
  read: (text: string) => string,
  nothing = '',
): (passage: string) => boolean {
  const needles = answers.map(read).filter((needle) => needle !== nothing);
  if (needles.length === 0) return () => false;
  return (passage) => {
    const haystack = read(passage);
    return needles.some((needle) => haystack.includes(needle));
  };
}

function joinedTokens(text: string): string {
  let joined = SEPARATOR;
  for (const [token] of text.normalize('NFD').matchAll(TOKEN)) joined += token.toLowerCase() + SEPARATOR;
  return joined;
}

/**
 * Returns a function that says whether a passage contains the characters of one of the answers, in any case and also inside of a word:
 * "art" matches "party". An empty answer matches nothing.
 */
export function substringMatcher(answers: readonly string[]): (passage: string) => boolean {
  return matcher(answers, (text) => text.trim().normalize('NFC').toLowerCase());
}

/**
 * Returns a function that says whether a passage contains one of the answers after `normalize_answer`, as in FlashRAG's retrieval recall and
 * Search-R1's format reward: in lower case, without ASCII punctuation and the words a, an and the, with single spaces. The characters count,
 * also inside of a word. Unlike there, an answer of which nothing is left matches nothing.
 */
export function normalisedMatcher(answers: readonly string[]): (passage: string) => boolean {
  return matcher(answers, normalised);
}

/** What `string.punctuation` of Python has. */
const PUNCTUATION = /[!-/:-@[-`{-~]/g;
/** `\b` of Python knows letters and digits of all scripts. */
const ARTICLES = /(?<![\p{L}\p{N}])(?:a|an|the)(?![\p{L}\p{N}])/gu;
/** What `str.split()` of Python takes for white space. */
const SPACES = /[\p{Z}\t-\r\u001c-\u001f\u0085]+/gu;

function normalised(text: string): string {
  return text.toLowerCase().replace(PUNCTUATION, '').replace(ARTICLES, ' ').replace(SPACES, ' ').replace(/^ | $/g, '');
}
