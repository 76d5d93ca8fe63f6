import type {
  Cut,
  EncodeOutcome,
  EncoderInput,
  EncoderLoad,
  TextKind,
  TruncateSide,
} from '../embedding/text-encoder.ts';
import type { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';
import type { Metric } from '../metric.ts';
import type { Lookup } from '../passages/schema.ts';
import type { SearchLoad } from '../vector-index/vector-index.ts';
import type { StageTimings } from './timings.ts';

export interface Hit {
  readonly row: number;
  /** Larger is nearer, whatever the metric. Rounded once to float32. */
  readonly score: number;
  /** The corpus row as JSON text, verbatim. */
  readonly document: string;
}

/** One failing query fails alone: a dialect without per-query errors turns it into an error of the call. */
export type QueryOutcome =
  | {
      readonly ok: true;
      /** Best first; fewer than k only when the index has fewer candidate rows. */
      readonly hits: readonly Hit[];
      /** Tokens embedded, special tokens included. */
      readonly tokens: number;
      readonly truncated: boolean;
      /** What was embedded, prefix included, as it was before the limit took `cut` from it. */
      readonly text: string;
      readonly cut: Cut;
      readonly certificate: QueryCertificate;
    }
  | { readonly ok: false; readonly error: TrawlError };

/** How it is known that no other passage belongs among the hits. */
export interface QueryCertificate {
  readonly exact: true;
  /**
   * Exact rows scored for this query beside the scan of the codes, in the batch it was in: unlike the hits, it may differ in
   * other company. Null where the engine scores every row anyway.
   */
  readonly rescored: number | null;
}

export interface RetrieveCall {
  readonly queries: readonly EncoderInput[];
  /** Hits per query, ≥ 1. */
  readonly k: number;
  readonly truncate?: TruncateSide;
  /** Aborted when the client hangs up: the call rejects with CANCELLED. */
  readonly signal?: AbortSignal;
}

export interface RetrieveResult {
  /** One per query, in the order of the queries. */
  readonly outcomes: readonly QueryOutcome[];
  readonly timings: StageTimings;
}

export interface EmbedCall {
  readonly inputs: readonly EncoderInput[];
  readonly kind: TextKind;
  readonly truncate?: TruncateSide;
  readonly signal?: AbortSignal;
}

export interface EmbedResult {
  /** Row-major, inputs × dimension; a row of zeros where an input failed. */
  readonly vectors: Float32Array;
  readonly outcomes: readonly EncodeOutcome[];
  readonly timings: StageTimings;
}

export interface FindCall {
  /** `row`: keys are row numbers as text, for passages that have no name of their own. */
  readonly by: Lookup | 'row';
  readonly keys: readonly string[];
  /** Passages per key, ≥ 1. */
  readonly limit: number;
  readonly signal?: AbortSignal;
}

export interface FoundPassage {
  readonly row: number;
  /** The corpus row as JSON text, verbatim. */
  readonly document: string;
}

export interface FindResult {
  /** For each key the passages that have it, in row order; empty where none has. */
  readonly found: readonly (readonly FoundPassage[])[];
  readonly timings: StageTimings;
}

export interface RetrieverInfo {
  /** Name of the index: its directory's. */
  readonly index: string;
  /** Row numbers are below this; removed rows included. */
  readonly rows: number;
  /** Rows that were removed and are never found; absent where none were. */
  readonly removedRows?: number;
  readonly dimension: number;
  readonly metric: Metric;
  readonly generation: string;
  readonly model: ModelIdentity;
  /** What searching keeps of the index's files in memory; absent where it is not known. */
  readonly memory?: IndexMemory;
}

export interface IndexMemory {
  /** Bytes that want to stay in memory: screens, and codes that have none. */
  readonly residentBytes: number;
  /** Bytes of codes behind a screen, of which about a thousandth is read. */
  readonly touchedBytes: number;
  /** Bytes of exact rows, mapped and read a few dozen rows at a time. */
  readonly mappedBytes: number;
}

/** What waits and what was done since the retriever was opened; all numbers, for metrics. */
export interface RetrieverStatistics {
  readonly encoder: EncoderLoad;
  readonly search: SearchLoad;
  readonly waiting: WaitingStatistics;
  readonly sharing: SharingStatistics;
}

export interface WaitingStatistics {
  /** Calls that are not answered yet, and the bytes of their queries and expected answers. */
  readonly calls: number;
  readonly bytes: number;
  /** Bytes from which on calls are refused. */
  readonly maxBytes: number;
  /** Calls refused with OVERLOADED. */
  readonly refused: number;
}

export interface SharingStatistics {
  /**
   * Queries asked for. Each was in the cache, was answered with an equal one under way, or was computed; none of these yet
   * while it waits for an equal one, and several times computed where those it waited for left.
   */
  readonly queries: number;
  readonly cached: number;
  readonly joined: number;
  readonly computed: number;
  /** This retriever's answers in the cache, their bytes at two a character, and the most there may be of all retrievers'. */
  readonly cacheEntries: number;
  readonly cacheBytes: number;
  readonly cacheMaxBytes: number;
}

/** Text queries in, ranked passages out. */
export interface Retriever {
  readonly info: RetrieverInfo;
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  /** Whether every answer of a call is at hand, so that it waits for nothing: such a call is not refused for what waits. */
  hasAnswers(call: RetrieveCall): boolean;
  /** The vectors alone. */
  embed(call: EmbedCall): Promise<EmbedResult>;
  /** Passages by id, URL or title. NOT_SUPPORTED where the index has no such look-up. */
  find(call: FindCall): Promise<FindResult>;
  statistics(): RetrieverStatistics;
  /** What keeps every call from its answer until the index is opened anew; absent while calls are answered. */
  readonly failure?: TrawlError | undefined;
  /** Waits for running calls, then closes encoder, index and passages. Safe to call twice. */
  close(): Promise<void>;
}
