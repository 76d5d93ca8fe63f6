import { createRequire } from 'node:module';
import type { SnowballAnalyser } from '../lexical-settings.ts';
import { lowerCase } from './lower-case.ts';
import { eachStandardToken } from './standard-tokenizer.ts';

const require = createRequire(import.meta.url);

/** What differs between the languages; the rest is the same chain for all. */
interface Language {
  /** Name of the stemmer in the package. Default: the analyser's. */
  readonly stemmer?: string;
  /** The package's stop words are used where Lucene's analyser of the language has the same. */
  readonly stopWords: boolean;
  /** Words of the package's list that are not stop words in Lucene, mostly because they also have another meaning. */
  readonly kept?: readonly string[];
  /** Articles that lose their vowel before another word, as in «l'eau»: removed with the apostrophe. */
  readonly articles?: readonly string[];
}

const LANGUAGES: Readonly<Record<SnowballAnalyser, Language>> = {
  arabic: { stopWords: false },
  armenian: { stopWords: true },
  danish: { stopWords: true },
  dutch: { stopWords: true },
  finnish: { stopWords: true },
  french: {
    stopWords: true,
    kept: ['son', 'été', 'étés', 'est', 'sommes', 'fût', 'as', 'auras', 'aura', 'avions'],
    articles: ['l', 'm', 't', 'qu', 'n', 's', 'j', 'd', 'c', 'jusqu', 'quoiqu', 'lorsqu', 'puisqu'],
  },
  german: { stopWords: true },
  greek: { stopWords: true },
  hindi: { stemmer: 'indian', stopWords: false },
  hungarian: { stopWords: false },
  indonesian: { stopWords: false },
  irish: { stopWords: false },
  italian: {
    stopWords: true,
    articles: [
      ...['c', 'l', 'all', 'dall', 'dell', 'nell', 'sull', 'coll', 'pell', 'gl', 'agl', 'dagl', 'degl', 'negl', 'sugl'],
      ...['un', 'm', 't', 's', 'v', 'd'],
    ],
  },
  lithuanian: { stopWords: false },
  nepali: { stopWords: false },
  norwegian: { stopWords: true },
  portuguese: { stopWords: true },
  romanian: { stopWords: false },
  russian: { stopWords: true },
  serbian: { stopWords: false },
  spanish: { stopWords: false },
  swedish: { stopWords: true },
  tamil: { stopWords: true },
  turkish: { stopWords: false },
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

function stemmingOf(name: SnowballAnalyser): Stemming {
  const before = loaded.get(name);
  if (before !== undefined) return before;
  const { stemmer = name, stopWords, kept = [], articles = [] } = LANGUAGES[name];
  const { stemmer: stem } = require(`@orama/stemmers/${stemmer}`) as { stemmer: (word: string) => string };
  const words = stopWords ? (require(`@orama/stopwords/${stemmer}`) as { stopwords: readonly string[] }).stopwords : [];
  const made: Stemming = {
    stem,
    stopWords: new Set(words.filter((word) => !kept.includes(word))),
    articles: new Set(articles),
    known: new Map(),
  };
  loaded.set(name, made);
  return made;
}

interface SnowballTerm {
  /** Empty for a stop word. */
  readonly term: string;
  /** UTF-16 offset of its end in the text. */
  readonly end: number;
}

/**
 * The terms of a text in order: Lucene's tokens without elided articles, in lower case, without stop words, stemmed. Stop words
 * come as empty terms, and null where `eachStandardToken` yields it, so that the caller can pause anywhere.
 */
export function* snowballTerms(name: SnowballAnalyser, text: string): Generator<SnowballTerm | null, void> {
  const stemming = stemmingOf(name);
  for (const token of eachStandardToken(text)) {
    yield token && { term: termOf(stemming, name, token.term), end: token.end };
  }
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
