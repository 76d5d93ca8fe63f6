import { type AnalyserName, isSnowball } from '../lexical-settings.ts';
import { cjkBigrams } from './cjk-bigrams.ts';
import { foldWidth } from './cjk-width.ts';
import { lowerCase } from './lower-case.ts';
import { porterStem } from './porter-stem.ts';
import { snowballTerms } from './snowball.ts';
import { standardTokens } from './standard-tokenizer.ts';

/** Returns the terms of a text in order, with repetitions. */
export type Analyse = (text: string) => string[];

export function analyser(name: AnalyserName): Analyse {
  // The engine gets the terms joined by spaces, so they have its limits.
  if (isSnowball(name))
    return (text) => whitespace([...snowballTerms(name, text)].map((found) => found?.term ?? '').join(' '));
  switch (name) {
    case 'english':
    case 'anserini':
      return english;
    case 'standard':
      return (text) => standardTokens(text).map(({ term }) => lowerCase(term));
    case 'whitespace':
      return whitespace;
    case 'cjk':
      return cjk;
    default:
      throw new TypeError(`unknown analyser: ${name satisfies never}`);
  }
}

const ENGLISH_STOP_WORDS = new Set(
  (
    'a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to ' +
    'was will with'
  ).split(' '),
);

/** The stop words of Lucene's CJKAnalyzer: without "an", but with "s", "t", "www" and the empty term. */
const CJK_STOP_WORDS = new Set([...ENGLISH_STOP_WORDS, 's', 't', 'www', ''].filter((word) => word !== 'an'));

function english(text: string): string[] {
  return standardTokens(text)
    .map(({ term }) => lowerCase(withoutPossessive(term)))
    .filter((term) => !ENGLISH_STOP_WORDS.has(term))
    .map(porterStem);
}

/** Lucene's EnglishPossessiveFilter: removes a final apostrophe with s or S. */
function withoutPossessive(term: string): string {
  return /['\u2019\uff07][sS]$/.test(term) ? term.slice(0, -2) : term;
}

function cjk(text: string): string[] {
  const tokens = standardTokens(text).map((token) => ({ ...token, term: lowerCase(foldWidth(token.term)) }));
  return cjkBigrams(tokens).filter((term) => !CJK_STOP_WORDS.has(term));
}

/** Length in UTF-16 units at which Lucene's WhitespaceTokenizer ends a piece; it never splits a code point. */
const MAX_WHITESPACE_UNITS = 255;

function whitespace(text: string): string[] {
  const terms: string[] = [];
  let term = '';
  const flush = (): void => {
    if (term !== '') terms.push(term);
    term = '';
  };
  for (const character of text) {
    if (isJavaWhitespace(character.codePointAt(0)!)) {
      flush();
      continue;
    }
    term += character;
    if (term.length >= MAX_WHITESPACE_UNITS) flush();
  }
  flush();
  return terms;
}

/** Java's `Character.isWhitespace`: Unicode separators except the three no-break spaces, and some ASCII control characters. */
function isJavaWhitespace(code: number): boolean {
  if ((code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20)) return true;
  if (code < 0x1680) return false;
  return (
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a && code !== 0x2007) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x205f ||
    code === 0x3000
  );
}
