/**
 * How the native engine splits a text into terms:
 * - `english`: Lucene's EnglishAnalyzer (tokenizer, possessive, lower case, 33 stop words, Porter);
 * - `standard`: Lucene's StandardAnalyzer, Elasticsearch's default (tokenizer, lower case);
 * - `whitespace`: splits at white space and changes nothing else;
 * - `cjk`: Lucene's CJKAnalyzer (width, lower case, bigrams, its stop words).
 */
export type EngineAnalyser = 'english' | 'standard' | 'whitespace' | 'cjk';

/**
 * Languages whose words are reduced by a Snowball stemmer in JavaScript: tokenizer, lower case, stop words, stemmer. The engine
 * gets the terms separated by spaces and analyses them as `whitespace`.
 */
export const SNOWBALL_ANALYSERS = [
  ...(['arabic', 'armenian', 'danish', 'dutch', 'finnish', 'french', 'german', 'greek', 'hindi', 'hungarian'] as const),
  ...(['indonesian', 'irish', 'italian', 'lithuanian', 'nepali', 'norwegian', 'portuguese', 'romanian'] as const),
  ...(['russian', 'serbian', 'spanish', 'swedish', 'tamil', 'turkish'] as const),
] as const;
export type SnowballAnalyser = (typeof SNOWBALL_ANALYSERS)[number];

/** The names that users give analysers. `anserini` is Pyserini's default, the same as `english`. */
export const ANALYSERS = ['english', 'anserini', 'standard', 'whitespace', 'cjk', ...SNOWBALL_ANALYSERS] as const;
export type AnalyserName = (typeof ANALYSERS)[number];

/** The packages that make the terms of the Snowball analysers. An index records them, because others may make other terms. */
export const STEMMER = '@orama/stemmers 3.1.18, @orama/stopwords 3.1.18';

export function isSnowball(name: AnalyserName): name is SnowballAnalyser {
  return (SNOWBALL_ANALYSERS as readonly AnalyserName[]).includes(name);
}

/** The analyser that makes the terms in the engine, as file headers name it: for a Snowball analyser `whitespace`, over the stemmed terms. */
export function engineAnalyser(name: AnalyserName): EngineAnalyser {
  if (isSnowball(name)) return 'whitespace';
  return name === 'anserini' ? 'english' : name;
}

/** Version of the Unicode rules that split texts into words, the same as in Lucene 9. */
export const UNICODE_VERSION = '12.1';

/** The parts of a passage that `trawl index` indexes: title and text together, or each of them. */
export const LEXICAL_FIELDS = ['contents', 'title', 'text'] as const;
/** One of `LEXICAL_FIELDS`, or in an index that is filled over HTTP the path of any member of a document, such as `meta.abstract`. */
export type LexicalField = string;

/** Settings of the inverted indexes of an index, the same for all shards. */
export interface Bm25Settings {
  readonly analyser: AnalyserName;
  readonly unicode: string;
  /** The packages of a Snowball analyser (`STEMMER`); absent with the others. */
  readonly stemmer?: string;
  /** Default parameters of a search. */
  readonly k1: number;
  readonly b: number;
  readonly fields: readonly LexicalField[];
}
