import type { ModelIdentity } from '../encoder/identity/model-identity.ts';
import type { RerankerInfo } from '../encoder/rerank/reranker.ts';
import type { Column } from '../engine/filter/column.ts';
import type { Bm25Settings } from '../engine/lexical/lexical-settings.ts';
import type { Metric } from '../engine/metric.ts';
import type { SearchGpu } from '../engine/vectors/vector-index.ts';
import type { IndexDescription } from './opening/index-description.ts';
import type { SearchMode } from './search-mode.ts';

/** A view of an index. */
export interface ViewInfo {
  readonly name: string;
  /** Its passages, without deleted ones. */
  readonly passages: number;
  /** Hash of its rows; absent for a group of indexes. */
  readonly sha256?: string;
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
  /** Settings of its inverted indexes; null if it has none. `scoredBy` is the store whose own BM25 it is; absent: Trawl's. */
  readonly bm25: (Bm25Settings & { readonly scoredBy?: string }) | null;
  readonly columns: readonly Column[];
  /** The views that calls can name. */
  readonly views: readonly ViewInfo[];
  /** The views that limit every call of this retriever (`narrowedRetriever`); absent if there are none. */
  readonly within?: readonly string[];
  /** Values per vector; 0 for an index without vectors. */
  readonly dimension: number;
  /** Null for an index without vectors, as is `model`, which is also null for vectors that clients wrote. */
  readonly metric: Metric | null;
  readonly generation: string;
  readonly model: ModelIdentity | null;
  /** The field whose vectors clients wrote; `model` is null then. `normalize`: they have length 1. Absent: the vectors are a model's. */
  readonly written?: { readonly field: string; readonly normalize: boolean };
  /** Null without a reranker. */
  readonly reranker: RerankerInfo | null;
  readonly memory: IndexMemory;
  /** On which the first pass over its vectors runs; absent: they are searched on the CPU, or by a store. Absent for a group. */
  readonly gpu?: SearchGpu;
  /** How the index was made; absent for a group, a replay bundle and an index in a store. */
  readonly description?: IndexDescription;
  /** The indexes of a group, in its order; absent for one index. */
  readonly members?: readonly Pick<RetrieverInfo, 'index' | 'generation' | 'views'>[];
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
