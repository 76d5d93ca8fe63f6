import type { EncoderInput, TruncateSide } from '../embedding/text-encoder.ts';
import type { Filter } from '../filter/filter.ts';
import type { Bm25Ranking } from '../lexical-index/bm25.ts';
import type { QueryTemplate } from '../manifest/model-identity.ts';
import type { QueryOutcome } from './calls/query-outcome.ts';
import type { RerankSettings } from './calls/rerank-call.ts';
import type { HybridSettings } from './hybrid-settings.ts';
import type { Bm25Order, SearchMode } from './search-mode.ts';

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

/** The parts of a request that leave hits out or merge lists. */
export interface RecordedSelection {
  readonly minScore?: number;
  /** Number of ids to leave out. */
  readonly excluded?: number;
  readonly deduplicate?: string;
  readonly fuse?: string;
}
