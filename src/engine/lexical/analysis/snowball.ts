import { createRequire } from 'node:module';
import type { SnowballAnalyser } from '../lexical-settings.ts';
import type { TermSpan } from './cjk.ts';
import { lowerCase } from './lower-case.ts';
import { eachStandardToken } from './standard-tokenizer.ts';

const require = createRequire(import.meta.url);

/** Name of the stemmer in the package, where it is not the analyser's. */
const STEMMER_NAMES: Readonly<Partial<Record<SnowballAnalyser, string>>> = { hindi: 'indian' };

/** The languages whose analyser in Lucene has the package's stop words, but for `NOT_STOP_WORDS`. */
const WITH_STOP_WORDS: ReadonlySet<SnowballAnalyser> = new Set([
  ...(['armenian', 'danish', 'dutch', 'finnish', 'french', 'german', 'greek', 'italian', 'norwegian'] as const),
  ...(['portuguese', 'russian', 'swedish', 'tamil'] as const),
]);

/** Words of the package's list that are not stop words in Lucene, mostly because they also have another meaning. */
const NOT_STOP_WORDS: Readonly<Partial<Record<SnowballAnalyser, string>>> = {
  french: 'son été étés est sommes fût as auras aura avions',
};

/** Articles that lose their vowel before another word, as in «l'eau»: removed with the apostrophe. */
const ARTICLES: Readonly<Partial<Record<SnowballAnalyser, string>>> = {
  french: 'l m t qu n s j d c jusqu quoiqu lorsqu puisqu',
  italian: 'c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d',
};

/** Stems kept for words that come again. A made-up text cannot make it grow further. */
const MAX_KEPT_STEMS = 65_536;

interface Stemming {
  readonly stem: (word: string) => string;
  readonly stopWords: ReadonlySet<string>;
  readonly articles: ReadonlySet<string>;
  readonly known: Map<string, string>;
}

const loaded = new Map<SnowballAnalyser, Stemming>();

function loadStemming(name: SnowballAnalyser): Stemming {
  const before = loaded.get(name);
  if (before !== undefined) return before;
  const file = STEMMER_NAMES[name] ?? name;
  const { stemmer: stem } = require(`@orama/stemmers/${file}`) as { stemmer: (word: string) => string };
  const { stopwords } = WITH_STOP_WORDS.has(name)
    ? (require(`@orama/stopwords/${file}`) as { stopwords: readonly string[] })
    : { stopwords: [] };
  const excepted = NOT_STOP_WORDS[name]?.split(' ') ?? [];
  const made: Stemming = {
    stem,
    stopWords: new Set(stopwords.filter((word) => !excepted.includes(word))),
    articles: new Set(ARTICLES[name]?.split(' ')),
    known: new Map(),
  };
  loaded.set(name, made);
  return made;
}

/**
 * The terms of a text in order: Lucene's tokens without elided articles, in lower case, without stop words, stemmed. Stop words
 * come as empty terms, and null where `eachStandardToken` yields it, so that the caller can pause anywhere.
 */
export function* snowballTerms(name: SnowballAnalyser, text: string): Generator<TermSpan | null, void> {
  const stemming = loadStemming(name);
  for (const token of eachStandardToken(text)) yield token && { ...token, term: termOf(stemming, name, token.term) };
}

function termOf({ stem, stopWords, articles, known }: Stemming, name: SnowballAnalyser, token: string): string {
  const word = name === 'turkish' ? turkishLowerCase(token) : lowerCase(withoutArticle(token, articles));
  const before = known.get(word);
  if (before !== undefined) return before;
  const term = stopWords.has(word) ? '' : stem(word);
  if (known.size >= MAX_KEPT_STEMS) known.clear();
  known.set(word, term);
  return term;
}

/** Lucene's ElisionFilter. */
function withoutArticle(token: string, articles: ReadonlySet<string>): string {
  if (articles.size === 0) return token;
  const at = token.search(/['\u2019]/);
  return at > 0 && articles.has(lowerCase(token.slice(0, at))) ? token.slice(at + 1) : token;
}

/** Turkish has i with and without a dot, each with its capital. */
function turkishLowerCase(token: string): string {
  return lowerCase(token.replaceAll('I\u0307', 'i').replaceAll('I', '\u0131'));
}
