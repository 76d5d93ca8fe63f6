import type { LexicalIndex, LexicalRequest, LexicalResult } from './lexical-index.ts';
import type { LexicalQuery } from './lexical-query.ts';
import type { LexicalField } from './lexical-settings.ts';

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

export function mappedBytesOf(indexes: ReadonlyMap<LexicalField, LexicalIndex>): number {
  return [...indexes.values()].reduce((sum, { mappedBytes }) => sum + mappedBytes, 0);
}
