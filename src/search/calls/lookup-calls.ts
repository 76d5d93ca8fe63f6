import type { TrawlError } from '../../base/errors.ts';
import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { TermScore } from '../../engine/lexical/lexical-index.ts';
import type { LexicalQuery } from '../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../engine/lexical/lexical-settings.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { Lookup } from '../../index/passages/schema.ts';
import type { StageTimings } from '../timings.ts';
import type { HitSource } from './query-outcome.ts';
import type { CallOptions, RetrieveQuery, RowScope } from './retrieve-call.ts';

export interface FindCall extends RowScope, CallOptions {
  /** With `row`, keys are row numbers in decimal, for passages without an id, URL or title. */
  readonly by: Lookup | 'row';
  readonly keys: readonly string[];
  /** Passages per key, ≥ 1. */
  readonly limit: number;
}

export interface FoundPassage {
  readonly row: number;
  /** Present in a group of indexes. */
  readonly source?: Pick<HitSource, 'index' | 'row'>;
  /** The corpus row as JSON text, verbatim. */
  readonly document: string;
}

export interface FindResult {
  /** The passages of each key in row order; empty for an unknown key. */
  readonly found: readonly (readonly FoundPassage[])[];
  readonly timings: StageTimings;
}

/** Asks for the set of the live rows with one of these ids, or of those that a query tree matches, or without both of all in the scope. */
export interface SelectCall extends RowScope, CallOptions {
  readonly ids?: readonly string[];
  /** Has no effect beside `ids`. */
  readonly query?: LexicalQuery;
}

/** Asks for the rows whose vectors are nearest to a vector. */
export interface NearestCall extends RowScope, CallOptions {
  /** One value per dimension of the index. */
  readonly vector: Float32Array;
  /** Rows, ≥ 1. */
  readonly k: number;
  /** Rows that may be found, if they are in the scope. Default: all. */
  readonly rows?: RowBitmap;
}

export interface NearestResult {
  /** Best first; fewer than k only if fewer rows may be found. Scores are in float64, as the metric defines them. */
  readonly nearest: readonly { readonly row: number; readonly score: number }[];
  readonly timings: StageTimings;
}

/** Asks for the scores of given passages, which a search may not have found. */
export interface ScoreCall extends RowScope, CallOptions {
  /** Each query with the rows to score. A row outside of the scope, or a deleted one, gets the score 0 and no rank. */
  readonly queries: readonly { readonly query: EncoderInput; readonly rows: readonly number[] }[];
  /** A mode that the index lacks rejects the call with NOT_SUPPORTED. */
  readonly mode: 'dense' | 'bm25';
  /** Ranks up to this one are found, at the cost of a search for that number of hits; 0: none. */
  readonly maxRank: number;
  /** As in a search. */
  readonly bm25?: Bm25Ranking;
  readonly truncate?: TruncateSide;
}

/** The score of a passage for a query. It has the same bits as in a search. */
export interface RowScore {
  /** A float32. For BM25 0 if the passage has no word of the query. */
  readonly score: number;
  /** The passage's rank in the scope, from 1; null if it is larger than `maxRank`, or if BM25 does not find the passage. */
  readonly rank: number | null;
}

export type ScoreOutcome =
  | { readonly ok: true; readonly scores: readonly RowScore[] }
  | { readonly ok: false; readonly error: TrawlError };

export interface ScoreResult {
  /** One per query; the scores in the order of its rows. */
  readonly outcomes: readonly ScoreOutcome[];
  readonly timings: StageTimings;
}

/**
 * Asks for the parts of the scores of hits of BM25. It continues an accepted request, so it is not refused under load. A row outside of
 * the scope, or a deleted one, has no terms.
 */
export interface ExplainCall extends RowScope, CallOptions {
  readonly queries: readonly { readonly query: RetrieveQuery; readonly rows: readonly number[] }[];
  /** The parameters of the search. Default: k1 and b of the index, without the factor. */
  readonly bm25?: Bm25Ranking;
  /** That of the search. */
  readonly template?: QueryTemplate;
}

/** A term of a query in a passage that has it. */
export interface ExplainedTerm extends TermScore {
  readonly field: LexicalField;
}

export interface ExplainResult {
  /** For each query and row, the terms of the query that the row has, in the order of the query. Their scores are exact. */
  readonly explained: readonly (readonly (readonly ExplainedTerm[])[])[];
  readonly timings: StageTimings;
}
