import type { Compression } from '../../src/base/files/compression.ts';
import type { RowOptions } from './format-rows.ts';
import type { RuleOptions } from './open-rule.ts';

export interface WorkerSetup {
  readonly rule: RuleOptions;
  readonly row: RowOptions;
  readonly compression: Compression;
}

/** An invalid line; `line` is its number in the batch, from 0. */
export interface BadLine {
  readonly line: number;
  readonly reason: string;
}

/** Counts of a split batch. */
export interface BatchFacts {
  readonly documents: number;
  /** Documents without passages. */
  readonly emptyDocuments: number;
  readonly passages: number;
  readonly bad: readonly BadLine[];
}

/**
 * `split` splits the documents of a batch; the answer is its `BatchFacts`. `format` then formats its rows, and the answer is their bytes; `start` is the number of passages in all batches before it.
 */
export type PrepareRequest =
  | { readonly type: 'split'; readonly batch: number; readonly bytes: Uint8Array }
  | { readonly type: 'format'; readonly batch: number; readonly start: number; readonly header: boolean };
