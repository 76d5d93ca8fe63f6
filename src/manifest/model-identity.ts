import type { Metric } from '../metric.ts';

/**
 * How token vectors become one vector. `mean`: over attended tokens; `cls`: the first token; `pooler`: the graph's
 * pooler output; `last`: the last attended token; `none`: the graph's output is already one vector per text.
 */
export const POOLINGS = ['mean', 'cls', 'pooler', 'last', 'none'] as const;
export type Pooling = (typeof POOLINGS)[number];

export const PRECISIONS = ['float32', 'float16', 'int8'] as const;
export type Precision = (typeof PRECISIONS)[number];

/**
 * Everything that decides which vector a text gets. An index records it; a server compares its encoder's with the
 * index's and refuses to start where they differ.
 */
export interface ModelIdentity {
  readonly name: string;
  /** SHA-256 over the checksums of the graph, its external data and the tokenizer: two folders with equal content have equal values. */
  readonly sha256: string;
  readonly architecture: string;
  readonly dimension: number;
  /** Values that the model gives, where vectors are cut to the first `dimension` of them (Matryoshka). */
  readonly fullDimension?: number;
  readonly pooling: Pooling;
  readonly normalize: boolean;
  readonly similarity: Metric;
  readonly prefixes: { readonly query: string; readonly passage: string };
  /** Limits in tokens, special tokens included. */
  readonly maxTokens: { readonly query: number; readonly passage: number };
  readonly precision: Precision;
  /** Checksum over the checkpoint's weights and the tokenizer: equal for all precisions of one model; absent where not known. */
  readonly sourceSha256?: string;
  /** What was set against the model's own description, sorted; absent where nothing was. */
  readonly overrides?: string[];
  /** True when a text's vector has the same bits in any batch. */
  readonly batchInvariant: boolean;
}
