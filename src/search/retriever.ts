import type { TrawlError } from '../base/errors.ts';
import type { ModelIdentity, QueryTemplate } from '../encoder/identity/model-identity.ts';
import type { RerankList, RerankOutcome } from '../encoder/rerank/reranker.ts';
import type { EncodeOptions, EncodeOutcome, EncoderInput, TruncateSide } from '../encoder/text-encoder.ts';
import type { Bm25Ranking } from '../engine/lexical/bm25.ts';
import type { TermScore } from '../engine/lexical/lexical-index.ts';
import type { LexicalQuery } from '../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../engine/lexical/lexical-settings.ts';
import type { RowBitmap } from '../engine/row-bitmap.ts';
import type { Lookup } from '../index/passages/schema.ts';
import type { FailedQuery, HitSource } from './calls/query-outcome.ts';
import type { CallOptions, RetrieveCall, RetrieveQuery, RetrieveResult, RowScope } from './calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from './calls/tree-call.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import type { RetrieverStatistics } from './retriever-statistics.ts';
import type { StageTimings } from './timings.ts';

/** Queries in, ranked passages out. */
export interface Search {
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index. */
  searchTree(call: TreeCall): Promise<TreeResult>;
}

/** Facts about passages that a call names, by a key, a set of rows or a vector. */
export interface PassageLookup {
  /** Passages by id, URL, title or row. Rejects with NOT_SUPPORTED if the index was built without that look-up. */
  find(call: FindCall): Promise<FindResult>;
  /**
   * Rejects with NOT_SUPPORTED for ids if the index was built without the look-up by id, and for a query if it has no inverted index;
   * with INVALID_REQUEST for a filter as `retrieve` does, and for a query of words that matches more than 4 million rows.
   */
  select(call: SelectCall): Promise<RowBitmap>;
  score(call: ScoreCall): Promise<ScoreResult>;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index, and with K_TOO_LARGE for more than a million terms. */
  explain(call: ExplainCall): Promise<ExplainResult>;
  /** Rejects with NOT_SUPPORTED if the index has no vectors, with DIMENSION_MISMATCH and NON_FINITE_QUERY for a wrong vector. */
  nearest(call: NearestCall): Promise<NearestResult>;
}

/** The models of an index, for texts of the caller. */
export interface Models {
  embed(call: EmbedCall): Promise<EmbedResult>;
  /** Scores texts with the reranker. Rejects with NOT_SUPPORTED without a reranker, with RERANK_TOO_LARGE for too many tokens. */
  rerank(call: RerankCall): Promise<RerankResult>;
  /** Rejects with NOT_SUPPORTED if the index has no model and no tokenizer was named. */
  cut(call: CutCall): Promise<CutResult>;
}

/** What can be asked of an index, or of several as one. */
export interface Retriever extends Search, PassageLookup, Models {
  readonly info: RetrieverInfo;
}

/** A retriever that belongs to whoever opened it. */
export interface OpenRetriever extends Retriever {
  statistics(): RetrieverStatistics;
  /** Why every call fails until the index is opened again; undefined while calls are answered. */
  readonly failure: TrawlError | undefined;
  /** Waits for running calls, then closes encoder, index and passages. Safe to call twice. */
  close(): Promise<void>;
}

/** What the commands that search for many queries need to know of an index. */
export interface SearchSourceInfo
  extends Pick<RetrieverInfo, 'index' | 'rows' | 'modes' | 'bm25' | 'columns' | 'generation' | 'members'> {
  readonly model: Pick<ModelIdentity, 'name' | 'sha256' | 'prefixes' | 'queryTemplate'> | null;
  readonly reranker: RetrieverInfo['reranker'];
}

/**
 * The part of a `Retriever` that the commands with many queries use: bulk search, mining and Agentic-R's candidates. An opened index
 * is one, and so is an index of a running server (`ServerRetriever`).
 */
export interface SearchSource extends Pick<Retriever, 'retrieve' | 'score' | 'find' | 'rerank'> {
  readonly info: SearchSourceInfo;
}

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

/** Asks for a set of live rows: with one of these ids, else matched by a query tree, else all rows in the scope. */
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

interface NearestResult {
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

export type ScoreOutcome = { readonly ok: true; readonly scores: readonly RowScore[] } | FailedQuery;

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
  /** The template of the search. */
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

export interface EmbedCall extends CallOptions {
  readonly inputs: readonly EncoderInput[];
  readonly inputType: EncodeOptions['inputType'];
  /** As in `RetrieveCall`. */
  readonly template?: QueryTemplate;
  /** Default: `tail`. */
  readonly truncate?: TruncateSide;
}

export interface EmbedResult {
  /** Row-major, inputs × dimension; zeros for an input that failed. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  /** As in `EncodeResult`. */
  readonly tokens?: number;
  readonly timings: StageTimings;
}

/** Asks for the scores of texts that need not be passages of the index. */
export interface RerankCall extends CallOptions {
  readonly lists: readonly RerankList[];
  /** Whether scores are the model's output before its activation. Default: false. */
  readonly raw?: boolean;
}

export interface RerankResult {
  /** One per list, in their order. */
  readonly outcomes: readonly RerankOutcome[];
  readonly timings: StageTimings;
}

/** Asks for the beginnings of texts, by the tokens of the index's tokenizer or of the one that the operator named. */
export interface CutCall extends CallOptions {
  readonly texts: readonly string[];
  /** Most tokens of each text, ≥ 1, special tokens not counted. */
  readonly tokens: number;
}

/** The beginning of a text. */
export interface CutText {
  readonly text: string;
  /** Whether the text goes on. */
  readonly isCut: boolean;
}

export interface CutResult {
  /** One per text. Each ends with a whole word, unless the text has no white space for 100 characters there. */
  readonly texts: readonly CutText[];
  readonly timings: StageTimings;
}
