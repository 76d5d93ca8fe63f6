/**
 * How a text is split into terms:
 * - `english`: Lucene's EnglishAnalyzer (tokenizer, possessive, lower case, 33 stop words, Porter);
 * - `anserini`: Pyserini's default, which is the same as `english`;
 * - `standard`: Lucene's StandardAnalyzer, Elasticsearch's default (tokenizer, lower case);
 * - `whitespace`: split at white space, otherwise unchanged;
 * - `cjk`: Lucene's CJKAnalyzer (width, lower case, bigrams, its stop words).
 */
export const ANALYSERS = ['english', 'anserini', 'standard', 'whitespace', 'cjk'] as const;
export type AnalyserName = (typeof ANALYSERS)[number];

/** The analyser's name in the native engine and in a file's header: `english` and `anserini` are the same analyser there. */
export function engineAnalyser(name: AnalyserName): 'english' | 'standard' | 'whitespace' | 'cjk' {
  return name === 'anserini' ? 'english' : name;
}

/** Version of the Unicode rules that split texts into words, the same as in Lucene 9. */
export const UNICODE_VERSION = '12.1';

/** The parts of a passage that can be indexed: title and text together, or one of them. */
export const LEXICAL_FIELDS = ['contents', 'title', 'text'] as const;
export type LexicalField = (typeof LEXICAL_FIELDS)[number];

/** Settings of the inverted indexes of an index, the same for all shards. */
export interface Bm25Settings {
  readonly analyser: AnalyserName;
  readonly unicode: string;
  /** Default parameters of a search. */
  readonly k1: number;
  readonly b: number;
  readonly fields: readonly LexicalField[];
}
