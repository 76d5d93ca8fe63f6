import { type AnalyserName, isSnowball, type SnowballAnalyser } from '../lexical-settings.ts';
import { cjkBigrams, type TermSpan } from './cjk-bigrams.ts';
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

/** Returns the terms of a text with their places in it, in order, with repetitions. */
export type Locate = (text: string) => TermSpan[];

/** The terms of `analyser` with their places, for highlighting. */
export function locator(name: AnalyserName): Locate {
  if (isSnowball(name)) return (text) => snowballSpans(name, text);
  switch (name) {
    case 'english':
    case 'anserini':
      return englishSpans;
    case 'standard':
      return (text) => standardTokens(text).map(({ term, start, end }) => ({ term: lowerCase(term), start, end }));
    case 'whitespace':
      return (text) => placed(whitespace(text), text);
    case 'cjk':
      return cjkSpans;
    default:
      throw new TypeError(`unknown analyser: ${name satisfies never}`);
  }
}

/** Each token of the text gives one term, or an empty one. */
function snowballSpans(name: SnowballAnalyser, text: string): TermSpan[] {
  const found = [...snowballTerms(name, text)].flatMap((each) => each ?? []);
  return standardTokens(text).flatMap(({ start, end }, i) =>
    whitespace(found[i]?.term ?? '').map((term) => ({ term, start, end })),
  );
}

/** Terms that stand in the text as they are, one after another. */
function placed(terms: readonly string[], text: string): TermSpan[] {
  let at = 0;
  return terms.map((term) => {
    const start = text.indexOf(term, at);
    at = start + term.length;
    return { term, start, end: at };
  });
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
  return englishSpans(text).map(({ term }) => term);
}

function englishSpans(text: string): TermSpan[] {
  return standardTokens(text)
    .map(({ term, start, end }) => ({ term: lowerCase(withoutPossessive(term)), start, end }))
    .filter(({ term }) => !ENGLISH_STOP_WORDS.has(term))
    .map((span) => ({ ...span, term: porterStem(span.term) }));
}

/** Lucene's EnglishPossessiveFilter: removes a final apostrophe with s or S. */
function withoutPossessive(term: string): string {
  return /['\u2019\uff07][sS]$/.test(term) ? term.slice(0, -2) : term;
}

function cjk(text: string): string[] {
  return cjkSpans(text).map(({ term }) => term);
}

function cjkSpans(text: string): TermSpan[] {
  const tokens = standardTokens(text).map((token) => ({ ...token, term: lowerCase(foldWidth(token.term)) }));
  return cjkBigrams(tokens).filter(({ term }) => !CJK_STOP_WORDS.has(term));
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
