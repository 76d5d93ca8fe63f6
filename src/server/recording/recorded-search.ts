import type { QueryTemplate } from '../../encoder/identity/model-identity.ts';
import type { EncoderInput, TruncateSide } from '../../encoder/text-encoder.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import type { Bm25Ranking } from '../../engine/lexical/bm25.ts';
import type { QueryOutcome } from '../../search/calls/query-outcome.ts';
import type { RerankSettings } from '../../search/calls/retrieve-call.ts';
import type { HybridSettings } from '../../search/hybrid/hybrid-settings.ts';
import type { Bm25Order, SearchMode } from '../../search/search-mode.ts';
import type { QueryOrigin } from './query-origin.ts';
import type { RecordedOpening } from './recorded-opening.ts';

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
  /** Where each query comes from. Before `withOrigins`: what the fields of the dialect say about it. */
  readonly origins?: readonly QueryOrigin[];
  /** If not every item of the request is a query: the position of each query among them, and their number. */
  readonly items?: { readonly positions: readonly number[]; readonly count: number };
  /** One per query. */
  readonly outcomes: readonly QueryOutcome[];
}

/** The parts of a request that leave hits out or merge lists. */
export interface RecordedSelection {
  readonly minScore?: number;
  /** Number of ids to leave out. */
  readonly excluded?: number;
  readonly deduplicate?: string;
  readonly fuse?: string;
}

/** The request of a recorded search. */
export interface RecordedRequest {
  readonly requestId: string;
  readonly dialect: string;
  readonly index: string;
  readonly generation: string;
  /** The views that limited the search, with commas in between. */
  readonly view?: string;
}

/** Records queries and their hits, and what clients open. Its methods must neither throw nor block. */
export interface QueryRecord {
  record(request: RecordedRequest, search: RecordedSearch): void;
  /** Absent: openings are not recorded. */
  recordOpenings?(request: RecordedRequest, openings: readonly RecordedOpening[]): void;
}
