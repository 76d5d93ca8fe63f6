import type { Metric } from '../../engine/metric.ts';
import type { EndpointRecord } from './endpoint-record.ts';

/**
 * How token vectors become one vector. `mean`: over attended tokens; `cls`: the first token; `pooler`: the graph's
 * pooler output; `last`: the last attended token; `none`: the graph's output is already one vector per text.
 */
export const POOLINGS = ['mean', 'cls', 'pooler', 'last', 'none'] as const;
export type Pooling = (typeof POOLINGS)[number];

/** `bfloat16`: products in bfloat16, all else in float32, by the native engine. The others are ONNX graphs. */
export const PRECISIONS = ['float32', 'float16', 'bfloat16', 'int8'] as const;
export type Precision = (typeof PRECISIONS)[number];

/** What is embedded, with the model's separator in between; history: an agent's earlier queries, oldest first. */
export const QUERY_TEMPLATES = ['query', 'question-query', 'history-query', 'question-history-query'] as const;
export type QueryTemplate = (typeof QUERY_TEMPLATES)[number];

/** What comes before the truncation of a vector (Matryoshka). `layer-norm`: a layer norm without weights, as nomic-embed-text-v1.5 asks. */
export const BEFORE_TRUNCATION = ['layer-norm'] as const;
export type BeforeTruncation = (typeof BEFORE_TRUNCATION)[number];

/** The template of an index that names none: Agentic-R's form. */
export const DEFAULT_QUERY_TEMPLATE: QueryTemplate = 'question-query';

/** Everything that determines the vector of a text. A server refuses an index whose recorded model differs from its encoder. */
export interface ModelIdentity {
  readonly name: string;
  /** SHA-256 of the checksums of graph, external data and tokenizer; for an endpoint, of its record. */
  readonly sha256: string;
  readonly architecture: string;
  readonly dimension: number;
  /** The model's own dimension, if vectors are truncated to their first `dimension` values (Matryoshka). */
  readonly fullDimension?: number;
  /** Computed with all values before the truncation to `dimension`; only with `fullDimension`. Absent: nothing. */
  readonly beforeTruncation?: BeforeTruncation;
  readonly pooling: Pooling;
  readonly normalize: boolean;
  readonly similarity: Metric;
  readonly prefixes: { readonly query: string; readonly passage: string };
  /** Limits in tokens, special tokens included. Null only for an endpoint that does not say it. */
  readonly maxTokens: { readonly query: number | null; readonly passage: number | null };
  /** Null for an endpoint. */
  readonly precision: Precision | null;
  /** Absent: `DEFAULT_QUERY_TEMPLATE`. */
  readonly queryTemplate?: QueryTemplate;
  /** Checksum of the imported weights and the tokenizer: equal for all precisions of one model. Absent if unknown. */
  readonly sourceSha256?: string;
  /** Settings that override the model's description, sorted. Absent if there are none. */
  readonly overrides?: string[];
  /** Whether Trawl gives a text the same vector, bit for bit, in any batch. False for padded batches on a GPU, and for an endpoint. */
  readonly batchInvariant: boolean;
  /** Set if the model is behind HTTP. Its architecture is then `endpoint`, and its pooling `none`. */
  readonly endpoint?: EndpointRecord;
}

/** The identity of a model folder. */
export interface FolderModelIdentity extends ModelIdentity {
  readonly maxTokens: { readonly query: number; readonly passage: number };
  readonly precision: Precision;
  readonly endpoint?: never;
}
