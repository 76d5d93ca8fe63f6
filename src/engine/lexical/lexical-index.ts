import type { RowBitmap } from '../row-bitmap.ts';
import type { Bm25Parameters, FieldCounts } from './bm25.ts';
import type { LexicalQuery } from './lexical-query.ts';
import type { AnalyserName, EngineAnalyser, LexicalField } from './lexical-settings.ts';

/** The files of one field's inverted index, as an engine opens them. */
export interface LexicalSource {
  readonly analyser: AnalyserName;
  /** The packages that made the terms of a Snowball analyser. */
  readonly stemmer?: string;
  /** In row order. */
  readonly shards: readonly LexicalShardSource[];
  /** Absolute path of the index over the texts of the deleted rows; absent if no row is deleted. */
  readonly deleted?: string;
  /** Rows that are not deleted; absent if no row is deleted. */
  readonly liveRows?: RowBitmap;
}

/** A source as an engine opens it. Engines have no stemmers: `openLexicalIndex` adds them. */
export interface EngineSource extends LexicalSource {
  readonly analyser: EngineAnalyser;
}

interface LexicalShardSource {
  /** Absolute. */
  readonly path: string;
  readonly firstRow: number;
  readonly rows: number;
}

export interface LexicalRequest {
  /** Texts; the index analyses them. */
  readonly queries: readonly string[];
  /** Hits per query, at least 1. */
  readonly k: number;
  /** Default: Lucene's scores with k1 0.9 and b 0.4. */
  readonly parameters?: Bm25Parameters;
  /** Limits the hits to live rows whose bit is set; absent: all live rows. Must not change until the search has ended. */
  readonly filter?: RowBitmap;
  /** Aborting rejects the search with CANCELLED. */
  readonly signal?: AbortSignal;
}

export interface LexicalResult {
  /** Hits of each query: at most k, fewer where fewer rows contain a term of the query. */
  readonly counts: Uint32Array;
  /** Row numbers, queries × k, best first, −1 past the count. Of equal scores the lower row is first. */
  readonly rows: Float64Array;
  /** Score of each hit in `rows`, the same float32 value as Lucene's. Larger is better. */
  readonly scores: Float32Array;
  /** Distinct terms of each query after analysis. */
  readonly terms: Uint32Array;
  /** Postings of each query's terms. Postings are 0 where a store does not count them. */
  readonly postings: Float64Array;
  /** Postings that the search decoded; the others could not reach the best k. */
  readonly postingsRead: Float64Array;
  /** Whether the scores of each query are certainly Lucene's to the last bit. Absent: all are. A store may round a weight otherwise. */
  readonly isExact?: readonly boolean[];
}

/** A term of a query in a row that has it. */
export interface TermScore {
  readonly term: string;
  /** How often the query has the term, times the weight. */
  readonly boost: number;
  /** Live rows with the term. */
  readonly documentFrequency: number;
  /** Its part of the row's score. The float64 sum of the parts, rounded to float32, is the score. */
  readonly score: number;
}

export interface ExplainRequest {
  /** A text; the index analyses it. */
  readonly query: string;
  /** May be in any order, and may repeat. */
  readonly rows: readonly number[];
  /** Multiplies the boosts of all terms. Default: 1. */
  readonly weight?: number;
  /** Default: Lucene's scores with k1 0.9 and b 0.4. */
  readonly parameters?: Bm25Parameters;
  /**
   * Limit of the terms of all rows together. The call stops when it has found more, so that the rows may lack terms. Default: no
   * limit.
   */
  readonly maxTerms?: number;
  /** Aborting rejects the call with CANCELLED. */
  readonly signal?: AbortSignal;
}

/**
 * BM25 search over the rows of one index. Scores equal Lucene's bit for bit. The answer to a query does not depend on its
 * batch, nor on the number of threads and shards.
 */
export interface LexicalIndex {
  /** Rows, including deleted ones. */
  readonly rows: number;
  /** Over the live rows. */
  readonly counts: FieldCounts;
  /** Bytes of the mapped files; searches read the parts that their terms need. */
  readonly mappedBytes: number;
  /** @throws TrawlError CANCELLED; INDEX_FILE_FOREIGN if a file is damaged; RangeError if k, k1 or b is out of range. */
  search(request: LexicalRequest): Promise<LexicalResult>;
  /**
   * Returns the parts of the rows' scores: for each row, the terms of the query that it has, in the order of their first
   * appearance in the query.
   *
   * @throws TrawlError CANCELLED; INDEX_FILE_FOREIGN if a file is damaged; RangeError if k1, b or a row is out of range.
   */
  explain(request: ExplainRequest): Promise<TermScore[][]>;
  /** Waits for running searches, then closes the files. Safe to call twice. */
  close(): Promise<void>;
}

export interface LexicalFieldsRequest extends Omit<LexicalRequest, 'queries'> {
  readonly queries: readonly LexicalQuery[];
  /** Counts the matching rows exactly up to this number. The search skips less meanwhile. Default: 0, they are not counted. */
  readonly count?: number;
  /** Rows with a lower score (compared as float32) do not match. Default: none. */
  readonly minScore?: number;
}

export interface LexicalFieldsResult extends LexicalResult {
  /** Matching rows of each query: exact up to `count` of the request, else `count + 1`. Absent if they were not counted. */
  readonly totals?: Float64Array;
}

/**
 * BM25 search over all fields of one index. Scores equal Lucene 9.12's bit for bit. The answer to a query does not depend
 * on its batch, nor on the number of threads and shards.
 */
export interface LexicalFields {
  /** Rows, including deleted ones. */
  readonly rows: number;
  /** The inverted index of each field, for queries of one field. Closed together with this object. */
  readonly indexes: ReadonlyMap<LexicalField, LexicalIndex>;
  /** Bytes of the mapped files of all fields. */
  readonly mappedBytes: number;
  /**
   * `terms` of the result counts the distinct terms of a query; a term in several fields counts once.
   *
   * @throws TrawlError CANCELLED; INVALID_REQUEST if the texts of a query have too many terms or its boosts are too large
   * together; INDEX_FILE_FOREIGN if a file is damaged. TypeError or RangeError if a query is not a tree of this index, or another
   * part of the request is wrong.
   */
  search(request: LexicalFieldsRequest): Promise<LexicalFieldsResult>;
  /** Waits for running searches, then closes the files. Safe to call twice. */
  close(): Promise<void>;
}

/** Opens the inverted index of each field. If one cannot be opened, closes the others. */
export async function openIndexes<Index extends LexicalIndex>(
  sources: ReadonlyMap<LexicalField, EngineSource>,
  open: (source: EngineSource) => Index | Promise<Index>,
) {
  const indexes = new Map<LexicalField, Index>();
  const closeAll = async (): Promise<void> => {
    await Promise.all(Array.from(indexes.values(), (index) => index.close()));
  };
  try {
    for (const [field, source] of sources) indexes.set(field, await open(source));
  } catch (error) {
    await closeAll();
    throw error;
  }
  const all = [...indexes.values()];
  const mappedBytes = all.reduce((sum, index) => sum + index.mappedBytes, 0);
  return { rows: all[0]?.rows ?? 0, mappedBytes, indexes, closeAll };
}
