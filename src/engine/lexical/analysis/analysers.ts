import { type AnalyserName, isSnowball, type SnowballAnalyser } from '../lexical-settings.ts';
import { cjkBigrams, foldWidth, type TermSpan } from './cjk.ts';
import { lowerCase } from './lower-case.ts';
import { porterStem } from './porter-stem.ts';
import { snowballTerms } from './snowball.ts';
import { standardTokens } from './standard-tokenizer.ts';

/** Returns the terms of a text in order, with repetitions. */
export type Analyse = (text: string) => string[];

export function analyser(name: AnalyserName): Analyse {
  // Faster than the terms of the places.
  if (name === 'whitespace') return whitespace;
  const locate = locator(name);
  return (text) => locate(text).map(({ term }) => term);
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

/** The engine gets the terms joined by spaces and splits them as `whitespace`, so they have its limits. */
function snowballSpans(name: SnowballAnalyser, text: string): TermSpan[] {
  return [...snowballTerms(name, text)].flatMap((span) =>
    whitespace(span?.term ?? '').map((term) => ({ ...span!, term })),
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

function cjkSpans(text: string): TermSpan[] {
  const tokens = standardTokens(text).map((token) => ({ ...token, term: lowerCase(foldWidth(token.term)) }));
  return cjkBigrams(tokens).filter(({ term }) => !CJK_STOP_WORDS.has(term));
}

/** Java's `Character.isWhitespace`: Unicode separators except the three no-break spaces, and some ASCII control characters. */
const JAVA_WHITESPACE = /[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]+/;

/** Length in UTF-16 units at which Lucene's WhitespaceTokenizer ends a piece; it never splits a code point. */
const MAX_WHITESPACE_UNITS = 255;

function whitespace(text: string): string[] {
  return text.split(JAVA_WHITESPACE).flatMap((word) => {
    if (word.length < MAX_WHITESPACE_UNITS) return word === '' ? [] : [word];
    const pieces = [''];
    for (const character of word) {
      if (pieces.at(-1)!.length >= MAX_WHITESPACE_UNITS) pieces.push('');
      pieces[pieces.length - 1] += character;
    }
    return pieces;
  });
}
