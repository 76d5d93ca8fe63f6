import type { EncoderInput, TruncateSide } from '../embedding/text-encoder.ts';
import type { TrawlError } from '../errors.ts';
import type { ModelIdentity } from '../manifest/model-identity.ts';
import type { Metric } from '../metric.ts';
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
    }
  | { readonly ok: false; readonly error: TrawlError };

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

export interface RetrieverInfo {
  /** Name of the index: its directory's. */
  readonly index: string;
  readonly rows: number;
  readonly dimension: number;
  readonly metric: Metric;
  readonly generation: string;
  readonly model: ModelIdentity;
}

/** Text queries in, ranked passages out. */
export interface Retriever {
  readonly info: RetrieverInfo;
  retrieve(call: RetrieveCall): Promise<RetrieveResult>;
  /** Waits for running calls, then closes encoder, index and passages. Safe to call twice. */
  close(): Promise<void>;
}
