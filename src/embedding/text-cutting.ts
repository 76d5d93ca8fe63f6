import { cjkClass } from './tokenizers-unicode.ts';

/** True where a text may be cut before the character at `at`: its ids are then those of the two parts put together. */
export type TextBoundary = (text: string, at: number) => boolean;

const ALPHANUMERIC = /^[A-Za-z0-9]{2}$/;

/** Characters of text to try first for each token asked for: English has four to five, white space included. */
const CHARACTERS_PER_TOKEN = 8;

/**
 * Ids of `text`, of which a caller needs no more than the first `atMost` and to know whether there are more: the result
 * is exact where it has at most `atMost` ids, and otherwise its first `atMost` ids are. The library takes half a second
 * for a megabyte, so a long text is cut before it is tokenised, at a place (`boundary`)
 * where the ids of the whole are the ids of the two parts put together. Without such places (null) all is tokenised.
 */
export function idsOfHead(
  text: string,
  atMost: number,
  boundary: TextBoundary | null,
  idsOf: (text: string) => number[],
): number[] {
  if (boundary === null) return idsOf(text);
  for (let window = (atMost + 1) * CHARACTERS_PER_TOKEN; window < text.length; window *= 2) {
    const cut = lastBoundary(text, window, boundary);
    if (cut === 0) continue;
    const ids = idsOf(text.slice(0, cut));
    // With exactly atMost ids the rest could still be white space or more words: look further.
    if (ids.length > atMost) return ids;
  }
  return idsOf(text);
}

/** The largest boundary ≤ `from` in the upper half of the window, 0 where there is none. */
function lastBoundary(text: string, from: number, boundary: TextBoundary): number {
  for (let at = from; at > from / 2; at--) {
    if (boundary(text, at)) return at;
  }
  return 0;
}

/**
 * The characters before which a text may be cut, for a tokenizer with BERT's normaliser and pre-tokeniser; null where
 * an added token could reach over such a place.
 *
 * Why it is exact there: normalisation goes character by character, but for canonical reordering, which stays among the
 * combining marks behind a character that is none. Words never reach over white space, an ASCII punctuation character
 * or (where they are set apart) a CJK one. Only added tokens such as `[SEP]` are found before that, in the raw text, so
 * their characters are left out.
 */
export function bertBoundary(addedTokens: readonly string[], cjkSetApart: boolean): TextBoundary | null {
  const inAddedTokens = new Set(addedTokens.join(''));
  const whitespaceOrCjk = new RegExp(`[\\s${cjkClass}]`, 'u');
  if (whitespaceOrCjk.test([...inAddedTokens].join(''))) return null;
  // U+000B, U+000C and U+0085 are white space elsewhere, but BERT removes them as control characters.
  const punctuation = [...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'].filter((character) => !inAddedTokens.has(character));
  const escaped = punctuation.map((character) => `\\u{${character.codePointAt(0)!.toString(16)}}`).join('');
  const pattern = new RegExp(
    `[ \\t\\n\\r${escaped}${cjkSetApart ? '\\u3400-\\u4DBF\\u4E00-\\u9FFF\\uF900-\\uFAFF' : ''}]`,
    'u',
  );
  return (text, at) => pattern.test(text.charAt(at));
}

/**
 * Single spaces between ASCII letters or digits, for tokenizers whose words begin at spaces (byte-level BPE, Unigram behind
 * Metaspace); null where an added token could reach over one.
 *
 * Why it is exact there: such a word begins with its space, normalisers that go character by character (or grapheme by
 * grapheme) do nothing to the three characters, and white space that an added token takes off its side lies next to it.
 */
export function wordBoundary(addedTokens: readonly string[]): TextBoundary | null {
  if (addedTokens.some((token) => /^[A-Za-z0-9]|\s|[A-Za-z0-9]$/.test(token))) return null;
  return (text, at) => text.charAt(at) === ' ' && ALPHANUMERIC.test(text.charAt(at - 1) + text.charAt(at + 1));
}
