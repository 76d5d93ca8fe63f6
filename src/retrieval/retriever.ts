import type {
  EncodeOutcome,
  EncoderInput,
  EncoderLoad,
  InputType,
  TruncateSide,
  Truncation,
} from '../embedding/text-encoder.ts';
import type { TrawlError } from '../errors.ts';
import type { Column } from '../filter/column.ts';
import type { Filter } from '../filter/filter.ts';
import type { Bm25Parameters, Bm25Ranking } from '../lexical-index/bm25.ts';
import type { TermScore } from '../lexical-index/lexical-index.ts';
import type { LexicalQuery } from '../lexical-index/lexical-query.ts';
import type { Bm25Settings, LexicalField } from '../lexical-index/lexical-settings.ts';
import type { ModelIdentity, QueryTemplate } from '../manifest/model-identity.ts';
import type { Metric } from '../metric.ts';
import type { Lookup } from '../passages/schema.ts';
import type { RerankerInfo, RerankList, RerankOutcome } from '../rerank/reranker.ts';
import type { RowBitmap } from '../row-bitmap.ts';
import type { SearchLoad } from '../vector-index/vector-index.ts';
import type { HybridPlaces, ListRanges } from './hybrid-fusion.ts';
import type { HybridSettings } from './hybrid-settings.ts';
import type { StageTimings } from './timings.ts';
import type { OrderValue, TreeOrder } from './tree-order.ts';

/** How passages are ranked: by the similarity of their vectors, by BM25 over their words, or by both lists (`hybrid-settings.ts`). */
export const SEARCH_MODES = ['dense', 'bm25', 'hybrid'] as const;
export type SearchMode = (typeof SEARCH_MODES)[number];

/**
 * How BM25 hits with equal scores are ordered:
 * - `row`: by row, with exact scores;
 * - `pyserini`: by the id as text, with the rounded scores of Pyserini (`pyserini-order.ts`).
 */
export const BM25_ORDERS = ['row', 'pyserini'] as const;
export type Bm25Order = (typeof BM25_ORDERS)[number];

export interface Hit {
  readonly row: number;
  /** Larger is nearer, for all metrics and modes. Rounded to float32. Of a reranked hit: the score of the reranker. */
  readonly score: number;
  /** Rank (from 1) and score of a reranked hit in the search that found it; absent if the hit is not reranked. */
  readonly firstStage?: { readonly rank: number; readonly score: number };
  /** The corpus row as JSON text, verbatim. */
  readonly document: string;
  /** Hybrid: where the dense and the BM25 list have the row. Absent in other modes. */
  readonly places?: HybridPlaces;
  /** Present in a group of indexes, whose rows count over all indexes. */
  readonly source?: HitSource;
}

/** Where a group of indexes found a passage. */
export interface HitSource {
  /** Name of the index. */
  readonly index: string;
  /** Row in that index. */
  readonly row: number;
  /** Score in that index. */
  readonly score: number;
}

/** An index of a group that did not answer a query. */
export interface FailedIndex {
  readonly index: string;
  readonly error: TrawlError;
}

/** How a query was embedded or analysed. */
export interface QueryEmbedding {
  /** Tokens embedded, special tokens included; for BM25 the distinct terms of the query. */
  readonly tokens: number;
  readonly truncated: boolean;
  /** The text before truncation, prefix included. */
  readonly text: string;
  /** What truncation to the model's token limit removed. */
  readonly cut: Truncation;
}

export interface QueryAnswer extends QueryEmbedding {
  readonly ok: true;
  /** Best first. Fewer than k only if fewer rows may be found. */
  readonly hits: readonly Hit[];
  /** Null for an answer from the cache, which stores no vectors. Empty for BM25. */
  readonly vector: Float32Array | null;
  readonly certificate: QueryCertificate;
  /** Hybrid: the ranges of the two lists, from which the parts of a score follow; in a group one entry per index, with its name. */
  readonly ranges?: readonly (ListRanges & { readonly index?: string })[];
  /** Present if the call asked for reranking. */
  readonly rerank?: Reranking;
  /** The indexes of a group whose passages are missing, with `allowPartial`. Absent if there are none. */
  readonly failedIndexes?: readonly FailedIndex[];
}

/** What the reranker did with the hits of a query. */
export type Reranking =
  | {
      readonly ok: true;
      /** Name of the reranker. */
      readonly model: string;
      /** Passages that it scored. */
      readonly passages: number;
      /** Of these, passages that were truncated to its token limit. */
      readonly truncated: number;
    }
  /** It failed, and the call allows that: the hits are those of the search. */
  | { readonly ok: false; readonly error: TrawlError };

/** A query fails without failing its call. A dialect without errors per query fails the whole request. */
export type QueryOutcome = QueryAnswer | { readonly ok: false; readonly error: TrawlError };

/**
 * States that no other passage belongs among the hits, and the cost of the proof. For hybrid search: that the hits are the best of the
 * fusion of two lists, which are the exact first `depth` passages of dense and of BM25 search.
 */
export interface QueryCertificate {
  /** False only for the empty list in place of an answer that was not recorded (docs/replay.md). */
  readonly exact: boolean;
  /**
   * Rows rescored for this query after the scan of the codes. Unlike the hits, the number depends on the other queries of the
   * batch. Null if the engine scores every row.
   */
  readonly rescored: number | null;
  /** Hybrid: the length of the two lists, at most the rows of the index. Absent in other modes. */
  readonly depth?: number;
}

/**
 * A query with the vector that an earlier call returned, from this retriever or from one with the same encoder and prefix. The
 * retriever searches it again (with a larger k, or in another index) without embedding it. Since it continues an accepted
 * request, statistics do not count it again, and the limit of waiting calls does not apply to it.
 */
export interface EmbeddedQuery {
  readonly input: EncoderInput;
  /** The truncate side it was embedded with; the call's is ignored. */
  readonly truncate: TruncateSide;
  readonly embedding: QueryEmbedding;
  /** One value per dimension of the index; empty for BM25. */
  readonly vector: Float32Array;
}

export type RetrieveQuery = EncoderInput | EmbeddedQuery;

/** Hits that a reranker scores if nothing else is chosen. */
export const DEFAULT_RERANK_DEPTH = 50;

/** How the hits of a search are reranked. */
export interface RerankSettings {
  /** Hits of the search that the reranker scores, ≥ 1; at least k are scored in any case. */
  readonly depth: number;
  /** Name of the reranker. Another name than that of `info.reranker` rejects the call with NOT_SUPPORTED. Default: that one. */
  readonly model?: string;
  /** Whether a query gets the hits of the search if its reranking fails. Default: false, the query fails. */
  readonly allowFailure?: boolean;
}

/**
 * The rows that a call may use. All others are treated as if they were deleted: they are not found, not returned and not counted. The
 * statistics of BM25, such as the number of passages with a term, are those of the whole index in any case.
 */
export interface RowScope {
  /**
   * By the columns of the corpus. A column that the index does not have, or a value of another type, rejects the call with
   * INVALID_REQUEST. Default: all rows.
   */
  readonly filter?: Filter;
  /** Names of views: only rows that are in all of them. A view that the index does not have rejects the call with NOT_FOUND. */
  readonly views?: readonly string[];
}

/** A search is exact among the rows of its scope. */
export interface RetrieveCall extends RowScope {
  readonly queries: readonly RetrieveQuery[];
  /** Hits per query, ≥ 1. */
  readonly k: number;
  /** Default: the first of `info.modes`. A mode that the index lacks rejects the call with NOT_SUPPORTED. */
  readonly mode?: SearchMode;
  /**
   * k1, b and the factor k1 + 1 of BM25; for an index with title and text apart, the weights of the fields and the tie breaker.
   * Default: k1 and b of the index, without the factor. Weights for an index of one field reject the call with NOT_SUPPORTED.
   */
  readonly bm25?: Bm25Ranking;
  /** Has no effect on dense and hybrid search. Default: `row`. */
  readonly bm25Order?: Bm25Order;
  /** How hybrid search fuses its lists; no effect in other modes. Default: `hybridSettings({}, 1)`. */
  readonly hybrid?: HybridSettings;
  /**
   * Orders the hits by the scores of the reranker, equal scores by their rank in the search. Rejects with NOT_SUPPORTED without a
   * reranker, with RERANK_TOO_LARGE for too many tokens. Default: no reranking.
   */
  readonly rerank?: RerankSettings;
  /** Which of question, history and query are searched for. Default: the template of the index's encoder, else `question-query`. */
  readonly template?: QueryTemplate;
  /** Whether a group answers from the indexes that do not fail. Has no effect on one index. Default: false, the call fails. */
  readonly allowPartial?: boolean;
  /** Default: `tail`. */
  readonly truncate?: TruncateSide;
  /** Aborting (when the client disconnects) rejects the call with CANCELLED. */
  readonly signal?: AbortSignal;
}

export interface RetrieveResult {
  /** One per query, in the order of the queries. */
  readonly outcomes: readonly QueryOutcome[];
  readonly timings: StageTimings;
}

/** A search by a query tree over the fields of the inverted indexes. */
export interface TreeCall extends RowScope {
  readonly query: LexicalQuery;
  readonly parameters: Bm25Parameters;
  /** Hits to skip, and hits to return after them; both at least 0. */
  readonly from: number;
  readonly size: number;
  /** Counts the matching passages exactly up to this number; 0 does not count them. */
  readonly count: number;
  /** Passages with a lower score do not match. Default: none. */
  readonly minScore?: number | undefined;
  /**
   * The order of the hits, the first criterion first. More than a million matches reject the call with INVALID_REQUEST, as
   * does a column that the index does not have. Default: by score, best first, equal scores by row.
   */
  readonly order?: readonly TreeOrder[];
  /** With `order`: only hits after these values, one for each criterion. Default: all. */
  readonly after?: readonly OrderValue[];
  /** With `order`: whether scores are computed although no criterion needs them. Else they are arbitrary. Default: false. */
  readonly scored?: boolean;
  /**
   * Stands for `query` in the cache and in single flight: calls with the same key must have the same query while the index has the same
   * rows. Default: the call is computed in any case.
   */
  readonly key?: string;
  readonly signal?: AbortSignal;
}

export interface TreeHit extends Hit {
  /** With `order`: the values of its criteria. */
  readonly orderValues?: readonly OrderValue[];
}

export interface TreeResult {
  /** Best first, or in the order of the call. */
  readonly hits: readonly TreeHit[];
  /** Score of the best match, also if it was skipped; null without a match. Arbitrary where scores are. */
  readonly best: number | null;
  /** Matching passages: exact up to `count`, else `count + 1`. */
  readonly total: number;
  readonly timings: StageTimings;
}

/** Asks for the set of the live rows with one of these ids, or of those that a query tree matches, or without both of all in the scope. */
export interface SelectCall extends RowScope {
  readonly ids?: readonly string[];
  /** Has no effect beside `ids`. */
  readonly query?: LexicalQuery;
  readonly signal?: AbortSignal;
}

/** Asks for the rows whose vectors are nearest to a vector. */
export interface NearestCall extends RowScope {
  /** One value per dimension of the index. */
  readonly vector: Float32Array;
  /** Rows, ≥ 1. */
  readonly k: number;
  /** Rows that may be found, if they are in the scope. Default: all. */
  readonly rows?: RowBitmap;
  readonly signal?: AbortSignal;
}

export interface NearestResult {
  /** Best first; fewer than k only if fewer rows may be found. Scores are those of the metric, in float64. */
  readonly nearest: readonly { readonly row: number; readonly score: number }[];
  readonly timings: StageTimings;
}

/** Asks for the scores of texts that need not be passages of the index. */
export interface RerankCall {
  readonly lists: readonly RerankList[];
  /** Whether scores are the model's output before its activation. Default: false. */
  readonly raw?: boolean;
  readonly signal?: AbortSignal;
}

export interface RerankResult {
  /** One per list, in their order. */
  readonly outcomes: readonly RerankOutcome[];
  readonly timings: StageTimings;
}

/**
 * Asks for the parts of the scores of hits of BM25. It continues an accepted request, so it is not refused under load. A row outside of
 * the scope, or a deleted one, has no terms.
 */
export interface ExplainCall extends RowScope {
  readonly queries: readonly { readonly query: RetrieveQuery; readonly rows: readonly number[] }[];
  /** The parameters of the search. Default: k1 and b of the index, without the factor. */
  readonly bm25?: Bm25Ranking;
  /** That of the search. */
  readonly template?: QueryTemplate;
  readonly signal?: AbortSignal;
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

/** Asks for the scores of given passages, which a search may not have found. */
export interface ScoreCall extends RowScope {
  /** Each query with the rows to score. A row outside of the scope, or a deleted one, gets the score 0 and no rank. */
  readonly queries: readonly { readonly query: EncoderInput; readonly rows: readonly number[] }[];
  /** A mode that the index lacks rejects the call with NOT_SUPPORTED. */
  readonly mode: 'dense' | 'bm25';
  /** Ranks up to this one are found, at the cost of a search for that number of hits; 0: none. */
  readonly maxRank: number;
  /** As in a search. */
  readonly bm25?: Bm25Ranking;
  readonly truncate?: TruncateSide;
  readonly signal?: AbortSignal;
}

/** The score of a passage for a query, equal to that of a search in all bits. */
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

/** The search of one request, which may take several calls: `k` as requested, and the hits as sent in the response. */
export interface RecordedSearch {
  readonly queries: readonly EncoderInput[];
  readonly k: number;
  /** Absent: the default of the index. */
  readonly mode?: SearchMode;
  readonly rerank?: RerankSettings;
  /** Absent: the template of the index. */
  readonly template?: QueryTemplate;
  readonly truncate?: TruncateSide;
  readonly filter?: Filter;
  /** Hybrid: how the lists were fused. */
  readonly hybrid?: HybridSettings;
  readonly bm25?: Bm25Ranking;
  readonly bm25Order?: Bm25Order;
  /** How the request chose among the hits that were found, or merged the lists. Absent: the outcomes are what was found. */
  readonly selection?: RecordedSelection;
  /** The agent's trajectory of each query, if the request names them. */
  readonly trajectories?: readonly string[];
  /** One per query. */
  readonly outcomes: readonly QueryOutcome[];
}

/** The parts of a request of /v1/search that leave hits out or merge lists. */
export interface RecordedSelection {
  readonly minScore?: number;
  /** Number of ids to leave out. */
  readonly excluded?: number;
  readonly deduplicate?: string;
  readonly fuse?: string;
}

export interface EmbedCall {
  readonly inputs: readonly EncoderInput[];
  readonly inputType: InputType;
  /** As in `RetrieveCall`. */
  readonly template?: QueryTemplate;
  /** Default: `tail`. */
  readonly truncate?: TruncateSide;
  readonly signal?: AbortSignal;
}

export interface EmbedResult {
  /** Row-major, inputs × dimension; zeros for an input that failed. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  readonly timings: StageTimings;
}

export interface FindCall extends RowScope {
  /** With `row`, keys are row numbers in decimal, for passages without an id, URL or title. */
  readonly by: Lookup | 'row';
  readonly keys: readonly string[];
  /** Passages per key, ≥ 1. */
  readonly limit: number;
  readonly signal?: AbortSignal;
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

/** Asks for the beginnings of texts, by the tokens of the index's tokenizer or of the one that the operator named. */
export interface CutCall {
  readonly texts: readonly string[];
  /** Most tokens of each text, ≥ 1, special tokens not counted. */
  readonly tokens: number;
  readonly signal?: AbortSignal;
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

/** A view of an index. */
export interface ViewInfo {
  readonly name: string;
  /** Its passages, without deleted ones. */
  readonly passages: number;
}

export interface RetrieverInfo {
  /** Name of the index. Default: the name of its directory. */
  readonly index: string;
  /** Rows, deleted rows included. Row numbers are below this. */
  readonly rows: number;
  /** Deleted rows, which no search or look-up returns. */
  readonly deletedRows: number;
  /** The modes in which the index can be searched, the default mode first. */
  readonly modes: readonly SearchMode[];
  /** Settings of its inverted indexes; null if it has none. */
  readonly bm25: Bm25Settings | null;
  /** The columns that filters can name. */
  readonly columns: readonly Column[];
  /** The views that calls can name. */
  readonly views: readonly ViewInfo[];
  /** The views that limit every call of this retriever (`narrowedRetriever`); absent if there are none. */
  readonly within?: readonly string[];
  /** Values per vector; 0 for an index without vectors. */
  readonly dimension: number;
  /** Null for an index without vectors, as is `model`. */
  readonly metric: Metric | null;
  readonly generation: string;
  readonly model: ModelIdentity | null;
  /** Null without a reranker. */
  readonly reranker: RerankerInfo | null;
  readonly memory: IndexMemory;
  /** The indexes of a group, in its order; absent for one index. */
  readonly members?: readonly { readonly index: string; readonly generation: string }[];
}

/** Bytes of the index's files, by how much of them a search reads. */
export interface IndexMemory {
  /** Read in full by every search: prefilters, and the codes of shards without a prefilter. */
  readonly residentBytes: number;
  /** Codes of shards with a prefilter: a search reads about a thousandth of them. */
  readonly touchedBytes: number;
  /** Exact rows, memory-mapped: a search reads a few dozen of them. */
  readonly mappedBytes: number;
  /** Inverted indexes, memory-mapped: a search reads the lists of its terms. */
  readonly lexicalBytes: number;
}

/** Current load, and counts since the retriever was opened, for metrics. */
export interface RetrieverStatistics {
  readonly encoder: EncoderLoad;
  readonly search: SearchLoad;
  readonly lexical: LexicalLoad;
  readonly rerank: RerankLoad;
  readonly waiting: WaitingStatistics;
  readonly sharing: SharingStatistics;
}

/** Counts of BM25 searches. */
export interface LexicalLoad {
  readonly queries: number;
  /** Postings of the queries' terms; those of a query that is searched again count again. */
  readonly postings: number;
  /** Postings that the searches decoded. */
  readonly postingsRead: number;
}

/** Counts of reranking. The pairs are those of this retriever, the expected wait is that of the whole reranker. */
export interface RerankLoad {
  /** Pairs of calls without an answer yet. */
  readonly waitingPairs: number;
  /** Expected time until all waiting pairs are scored, in milliseconds. */
  readonly expectedWaitMs: number;
  /** Lists of hits, or of a request's own texts. */
  readonly lists: number;
  /** Lists that failed. */
  readonly failedLists: number;
  /** Pairs of query and passage that were scored. */
  readonly pairs: number;
  /** Of these, pairs that were truncated to the token limit. */
  readonly truncatedPairs: number;
}

export interface WaitingStatistics {
  /** Calls without an answer yet, and the bytes of their queries and expected answers. */
  readonly calls: number;
  readonly bytes: number;
  /** Limit of `bytes`. Above it, calls are refused. */
  readonly maxBytes: number;
  /** Calls refused with OVERLOADED. */
  readonly refused: number;
}

export interface SharingStatistics {
  /**
   * Queries received. Each is also counted as cached, coalesced or computed. A query whose leader failed may be computed
   * several times.
   */
  readonly queries: number;
  readonly cached: number;
  /** Queries answered by an equal query in flight. */
  readonly coalesced: number;
  readonly computed: number;
  /** This retriever's answers in the cache, and their bytes at two per character. */
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  /** Limit of the cache, which several retrievers may share. */
  readonly cacheMaxBytes: number;
}

/** Text queries in, ranked passages out. */
export interface Retriever {
  readonly info: RetrieverInfo;
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  /** Whether the cache has the answers of all queries. Such a call does not wait and is not refused under load. */
  hasAnswers(call: RetrieveCall): boolean;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index, and with K_TOO_LARGE for more than a million terms. */
  explain(call: ExplainCall): Promise<ExplainResult>;
  score(call: ScoreCall): Promise<ScoreResult>;
  /** Rejects with NOT_SUPPORTED if the index has no inverted index. */
  searchTree(call: TreeCall): Promise<TreeResult>;
  /**
   * Rejects with NOT_SUPPORTED for ids if the index was built without the look-up by id, and for a query if it has no inverted index;
   * with INVALID_REQUEST for a filter as `retrieve` does, and for a query of words that matches more than 4 million rows.
   */
  select(call: SelectCall): Promise<RowBitmap>;
  /** Rejects with NOT_SUPPORTED if the index has no vectors, with DIMENSION_MISMATCH and NON_FINITE_QUERY for a wrong vector. */
  nearest(call: NearestCall): Promise<NearestResult>;
  embed(call: EmbedCall): Promise<EmbedResult>;
  /** Scores texts with the reranker. Rejects with NOT_SUPPORTED without a reranker, with RERANK_TOO_LARGE for too many tokens. */
  rerank(call: RerankCall): Promise<RerankResult>;
  /** Passages by id, URL, title or row. Rejects with NOT_SUPPORTED if the index was built without that look-up. */
  find(call: FindCall): Promise<FindResult>;
  /** Rejects with NOT_SUPPORTED if the index has no model and no tokenizer was named. */
  cut(call: CutCall): Promise<CutResult>;
  statistics(): RetrieverStatistics;
  /** Why every call fails until the index is opened again; undefined while calls are answered. */
  readonly failure: TrawlError | undefined;
  /** Waits for running calls, then closes encoder, index and passages. Safe to call twice. */
  close(): Promise<void>;
}
