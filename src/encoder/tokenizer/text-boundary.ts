import type { Splitter } from './splitters.ts';
import type { TokenizerFile } from './tokenizer-file.ts';
import { cjkClass } from './tokenizers-unicode.ts';

/** Whether a text may be split before the character at `at`: its ids are the ids of the two parts, one after the other. */
export type TextBoundary = (text: string, at: number) => boolean;

const ALPHANUMERIC = /^[A-Za-z0-9]{2}$/;

/** Characters of the first window per token that is needed: English has four to five, white space included. */
const CHARACTERS_PER_TOKEN = 8;

/**
 * The ids of `text`, exact up to `atMost`: a result of at most `atMost` ids is complete, and in a longer result the first `atMost`
 * ids are exact. A megabyte takes half a second, so only the head of a long text is tokenised, up to a `boundary`.
 * Without boundaries (null), the whole text is tokenised.
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
    // With exactly `atMost` ids, the rest of the text may still have words: a larger window decides.
    if (ids.length > atMost) return ids;
  }
  return idsOf(text);
}

/** The last boundary in the upper half of the window up to `from`; 0 if there is none. */
function lastBoundary(text: string, from: number, boundary: TextBoundary): number {
  for (let at = from; at > from / 2; at--) {
    if (boundary(text, at)) return at;
  }
  return 0;
}

/**
 * Normalisers under which a text may be split before a single space between two ASCII letters or digits: they keep that space, and the
 * result on one side of it does not depend on the other side.
 */
const LOCAL_NORMALIZERS = ['Precompiled', 'NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'Strip', 'StripAccents'];

/** Where a long text may be split; null if nowhere. */
export function boundaryOf(file: TokenizerFile, split: Splitter): TextBoundary | null {
  const { normalizer, added_tokens: added = [] } = file;
  // Whether a token is a single word depends on the character after it.
  if (added.some((token) => token.single_word === true)) return null;
  const contents = added.map((token) => token.content);
  if (hasBertWords(file)) return bertBoundary(contents, normalizer?.handle_chinese_chars ?? true);
  const normalizers = normalizer == null ? [] : (normalizer.normalizers ?? [normalizer]);
  const isLocal = normalizers.every(
    ({ type = '', pattern }) => LOCAL_NORMALIZERS.includes(type) || (type === 'Replace' && pattern?.Regex === ' {2,}'),
  );
  return isLocal && splitsBeforeSpaces(split) ? wordBoundary(contents) : null;
}

/** Whether words are the same if a text is split at white space. */
export function hasBertWords({ normalizer, pre_tokenizer }: TokenizerFile): boolean {
  return normalizer?.type === 'BertNormalizer' && pre_tokenizer?.type === 'BertPreTokenizer';
}

/** Whether a word ends where a single space stands between two ASCII letters or digits. */
function splitsBeforeSpaces(split: Splitter): boolean {
  return ['a b', 'a 1', '1 a', '1 1'].every((text) => {
    const head = split(text.charAt(0), true);
    const whole = split(text, true);
    return whole.length > head.length && head.every((word, at) => word === whole[at]);
  });
}

/**
 * Boundaries for a tokenizer with BERT's normaliser and pre-tokenizer: white space, ASCII punctuation and (if separated)
 * CJK characters. Null if an added token could cross a boundary.
 *
 * Splitting at these boundaries is exact: normalisation works per character, except for canonical ordering, which only moves the
 * combining marks after a base character, and no word contains a boundary character. Added tokens such as `[SEP]` are matched in
 * the raw text, before words, so their characters are not boundaries.
 */
function bertBoundary(addedTokens: readonly string[], separatesCjk: boolean): TextBoundary | null {
  const inAddedTokens = new Set(addedTokens.join(''));
  const whitespaceOrCjk = new RegExp(`[\\s${cjkClass}]`, 'u');
  if (whitespaceOrCjk.test([...inAddedTokens].join(''))) return null;
  // U+000B, U+000C and U+0085 are white space in Unicode, but BERT removes them as control characters.
  const punctuation = [...'!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~'].filter((character) => !inAddedTokens.has(character));
  const escaped = punctuation.map((character) => `\\u{${character.codePointAt(0)!.toString(16)}}`).join('');
  const pattern = new RegExp(
    `[ \\t\\n\\r${escaped}${separatesCjk ? '\\u3400-\\u4DBF\\u4E00-\\u9FFF\\uF900-\\uFAFF' : ''}]`,
    'u',
  );
  return (text, at) => pattern.test(text.charAt(at));
}

/**
 * Boundaries for tokenizers whose words begin at spaces (byte-level BPE, Unigram after Metaspace): single spaces between
 * ASCII letters or digits. Null if an added token could cross a boundary.
 *
 * Splitting at these boundaries is exact: a word begins with its space, normalisers that work per character or grapheme do not
 * change the three characters, and an added token strips only the white space next to it.
 */
function wordBoundary(addedTokens: readonly string[]): TextBoundary | null {
  // A token of several spaces (ModernBERT has some) does not match a single one.
  const crossing = addedTokens.filter((token) => !/^\s{2,}$/.test(token));
  if (crossing.some((token) => /^[A-Za-z0-9]|\s|[A-Za-z0-9]$/.test(token))) return null;
  return (text, at) => text.charAt(at) === ' ' && ALPHANUMERIC.test(text.charAt(at - 1) + text.charAt(at + 1));
}
