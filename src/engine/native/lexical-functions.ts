import { call, job } from './native-function.ts';

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
  /** For each query min(k, rows of the index) places, best first, −1 past the count. */
  readonly rows: Float64Array;
  /** In the same places: Lucene's float32 bits. */
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

export interface LexicalSearch {
  readonly k: number;
  readonly parameters: Bm25Parameters;
  /** Bits of the rows that may be found, as in RowBitmap; deleted rows are not found in any case. */
  readonly filter?: Uint8Array | undefined;
}

export interface FieldsSearch extends LexicalSearch {
  readonly queries: readonly NativeLexicalQuery[];
  readonly count?: number | undefined;
  readonly minScore?: number | undefined;
}

export interface NativeExplainRequest {
  readonly query: string;
  readonly rows: Float64Array;
  readonly parameters: Bm25Parameters;
  readonly weight: number;
  readonly maxTerms: number;
}

/** The addon's functions for inverted indexes. */
export const LEXICAL_FUNCTIONS = {
  /** The terms of a text in order, repeated ones included. */
  analyse: call<(analyser: NativeAnalyser, text: string) => string[]>(),
  /** Maps the files. Throws INDEX_FILE_MISSING or INDEX_FILE_FOREIGN naming the file. */
  openLexical: job<(spec: NativeLexicalSpec) => NativeLexicalIndex>(),
  lexicalFacts: call<(index: NativeLexicalIndex) => NativeLexicalFacts>(),
  /** Running searches keep the index until they end. */
  closeLexical: call<(index: NativeLexicalIndex) => void>(),
  searchLexical:
    job<
      (
        index: NativeLexicalIndex,
        request: LexicalSearch & { readonly queries: readonly string[] },
      ) => NativeLexicalResult
    >(),
  /** Searches query trees over several fields of the same rows. The first field says which rows are deleted. */
  searchLexicalFields:
    job<(fields: readonly NativeLexicalField[], request: FieldsSearch) => NativeLexicalFieldsResult>(),
  /** For each row the terms of the query that it has, in the order of their first appearance. Stops after `maxTerms` + 1 terms. */
  explainLexical: job<(index: NativeLexicalIndex, request: NativeExplainRequest) => NativeExplanation>(),
  /** Throws DISK_FULL or OUTPUT_NOT_WRITABLE. */
  createLexical: call<(path: string, analyser: NativeAnalyser) => NativeLexicalWriter>(),
  /**
   * Appends rows. One call at a time per writer. `texts`: UTF-8, one after another; `ends[i]`: the byte after text i.
   * Resolves to the rows appended in total.
   */
  appendLexical: job<(writer: NativeLexicalWriter, texts: Uint8Array, ends: Float64Array) => number>(),
  /** Writes the file and makes it durable. */
  finishLexical: job<(writer: NativeLexicalWriter) => LexicalFileCounts>(),
  /** Frees the writer and removes its temporary files. */
  closeLexicalWriter: call<(writer: NativeLexicalWriter) => void>(),
  /** Reads the whole file. Resolves to the first problem in words, or to null. */
  verifyLexical: job<(path: string) => string | null>(),
};
