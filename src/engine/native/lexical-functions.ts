declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeLexicalIndex {
  readonly [handleBrand]: 'lexical index';
}
export interface NativeLexicalWriter {
  readonly [handleBrand]: 'lexical writer';
}

/** The analysers of the engine, in the names that a manifest records. */
export type NativeAnalyser = 'english' | 'standard' | 'whitespace' | 'cjk';

export interface NativeLexicalSpec {
  /** Files of the shards in row order, one field each. */
  readonly shards: readonly string[];
  /** A file over the texts of the deleted rows, whose counts are subtracted. Absent: no row is deleted. */
  readonly deleted?: string;
  /** Bits of the rows that are not deleted, as in RowBitmap; copied once. Absent: all rows. */
  readonly liveRows?: Uint8Array;
}

/** A field in a search over several fields. */
export interface NativeLexicalField {
  readonly name: string;
  readonly index: NativeLexicalIndex;
}

/** A query tree; the addon checks it. src/engine/lexical/lexical-query.ts has its form, but a set of rows is the bitmap's bytes. */
export interface NativeLexicalQuery {
  readonly type: string;
}

/** Counts of one field. Those of an index are over its live rows. */
interface LexicalCounts {
  readonly rows: number;
  /** Rows with at least one token. */
  readonly documents: number;
  readonly tokens: number;
}

export interface NativeLexicalFacts extends LexicalCounts {
  readonly analyser: NativeAnalyser;
  readonly mappedBytes: number;
}

export interface LexicalFileCounts extends LexicalCounts {
  readonly terms: number;
  readonly postings: number;
}

export interface Bm25Parameters {
  readonly k1: number;
  readonly b: number;
  /** Multiply scores by k1 + 1, as Elasticsearch does and Lucene does not since version 8. */
  readonly k1Factor: boolean;
}

export interface NativeLexicalResult {
  readonly counts: Uint32Array;
  /** queries × k, best first, −1 past the count. */
  readonly rows: Float64Array;
  /** queries × k: Lucene's float32 bits. */
  readonly scores: Float32Array;
  /** Terms of each query after analysis, each counted once. */
  readonly terms: Uint32Array;
  /** Postings of each query's terms, and those in blocks that were read. */
  readonly postings: Float64Array;
  readonly postingsRead: Float64Array;
}

/** The same of query trees. */
export interface NativeLexicalFieldsResult extends NativeLexicalResult {
  /** Matching rows of each query, exact up to `count`, else `count + 1`; absent if they were not counted. */
  readonly totals?: Float64Array;
}

/** The terms of a query that each of several rows has. */
export interface NativeExplanation {
  /** The terms that any of the rows has, in the order of the query. */
  readonly names: readonly string[];
  /** Of each of them: how often the query has it, and how many live rows have it. */
  readonly boosts: Float64Array;
  readonly documentFrequencies: Float64Array;
  /** Terms of each row. */
  readonly counts: Uint32Array;
  /** Row after row: positions in `names`, and the scores. */
  readonly terms: Uint32Array;
  readonly scores: Float32Array;
}

/** The addon's functions for inverted indexes (native/addon/entries.hpp). */
export interface LexicalFunctions {
  analyse(analyser: NativeAnalyser, text: string): string[];
  openLexical(spec: NativeLexicalSpec): NativeLexicalIndex;
  lexicalFacts(index: NativeLexicalIndex): NativeLexicalFacts;
  closeLexical(index: NativeLexicalIndex): void;
  searchLexical(
    id: number,
    index: NativeLexicalIndex,
    queries: readonly string[],
    k: number,
    parameters: Bm25Parameters,
    filter: Uint8Array | undefined,
  ): Promise<NativeLexicalResult>;
  searchLexicalFields(
    id: number,
    fields: readonly NativeLexicalField[],
    queries: readonly NativeLexicalQuery[],
    k: number,
    parameters: Bm25Parameters,
    filter: Uint8Array | undefined,
    count: number | undefined,
    minScore: number | undefined,
  ): Promise<NativeLexicalFieldsResult>;
  explainLexical(
    id: number,
    index: NativeLexicalIndex,
    query: string,
    rows: Float64Array,
    parameters: Bm25Parameters,
    weight: number,
    maxTerms: number,
  ): Promise<NativeExplanation>;
  createLexical(path: string, analyser: NativeAnalyser): NativeLexicalWriter;
  appendLexical(id: number, writer: NativeLexicalWriter, texts: Uint8Array, ends: Float64Array): Promise<number>;
  finishLexical(id: number, writer: NativeLexicalWriter): Promise<LexicalFileCounts>;
  closeLexicalWriter(writer: NativeLexicalWriter): void;
  /** Resolves to the first problem in words, or to an empty string. */
  verifyLexical(id: number, path: string): Promise<string>;
}
