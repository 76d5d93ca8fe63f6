import type { Bm25Parameters } from '../lexical/bm25.ts';
import type { ExplainRequest, LexicalFieldsResult, LexicalResult } from '../lexical/lexical-index.ts';
import type { EngineAnalyser } from '../lexical/lexical-settings.ts';
import { call, job } from './native-function.ts';

declare const handleBrand: unique symbol;
/** A handle of the addon; only passed back to it. */
export interface NativeLexicalIndex {
  readonly [handleBrand]: 'lexical index';
}
export interface NativeLexicalWriter {
  readonly [handleBrand]: 'lexical writer';
}

/** A query tree as src/engine/lexical/lexical-query.ts has it, but a set of rows is the bitmap's bytes. The addon checks it. */
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
  readonly analyser: EngineAnalyser;
  readonly mappedBytes: number;
}

export interface LexicalFileCounts extends LexicalCounts {
  readonly terms: number;
  readonly postings: number;
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

export interface NativeLexicalRequest<Query> {
  readonly queries: readonly Query[];
  readonly k: number;
  readonly parameters: Bm25Parameters;
  /** Bits of the rows that may be found, as in RowBitmap. Deleted rows are never found. */
  readonly filter?: Uint8Array;
}

export interface NativeFieldsRequest extends NativeLexicalRequest<NativeLexicalQuery> {
  readonly count?: number;
  readonly minScore?: number;
}

export interface NativeExplainRequest extends Required<Omit<ExplainRequest, 'rows' | 'signal'>> {
  readonly rows: Float64Array;
}

/** The addon's functions for inverted indexes. */
export const LEXICAL_FUNCTIONS = {
  /** The terms of a text in order, repeated ones included. */
  analyse: call<(analyser: EngineAnalyser, text: string) => string[]>(),
  /**
   * Maps the files of one field in row order. `deleted`: a file over the texts of the deleted rows, whose counts are subtracted;
   * `liveRows`: bits of the other rows, as in RowBitmap, copied once. Throws INDEX_FILE_MISSING or INDEX_FILE_FOREIGN naming the file.
   */
  openLexical:
    job<(spec: { shards: readonly string[]; deleted?: string; liveRows?: Uint8Array }) => NativeLexicalIndex>(),
  lexicalFacts: call<(index: NativeLexicalIndex) => NativeLexicalFacts>(),
  /** Running searches keep the index until they end. */
  closeLexical: call<(index: NativeLexicalIndex) => void>(),
  searchLexical: job<(index: NativeLexicalIndex, request: NativeLexicalRequest<string>) => LexicalResult>(),
  /** Searches query trees over several fields of the same rows. The first field says which rows are deleted. */
  searchLexicalFields:
    job<
      (
        fields: readonly { name: string; index: NativeLexicalIndex }[],
        request: NativeFieldsRequest,
      ) => LexicalFieldsResult
    >(),
  /** For each row the terms of the query that it has, in the order of their first appearance. Stops after `maxTerms` + 1 terms. */
  explainLexical: job<(index: NativeLexicalIndex, request: NativeExplainRequest) => NativeExplanation>(),
  /** Throws DISK_FULL or OUTPUT_NOT_WRITABLE. */
  createLexical: call<(path: string, analyser: EngineAnalyser) => NativeLexicalWriter>(),
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
