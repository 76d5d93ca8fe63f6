import type { Compression } from '../corpus/compression.ts';
import type { SerializedError } from '../src/errors.ts';
import type { RowOptions } from './format-rows.ts';
import type { RuleOptions } from './open-rule.ts';

export interface WorkerSetup {
  readonly rule: RuleOptions;
  readonly row: RowOptions;
  readonly compression: Compression;
}

/** A line that cannot be used; `line` counts from 0 within its batch. */
export interface BadLine {
  readonly line: number;
  readonly reason: string;
}

/** What a worker found in a batch, before its rows have numbers. */
export interface BatchFacts {
  readonly documents: number;
  /** Those of them that gave no passage. */
  readonly emptyDocuments: number;
  readonly passages: number;
  readonly bad: readonly BadLine[];
}

/** `split` first; `format` when it is known how many passages come before. */
export type PrepareRequest =
  | { readonly kind: 'split'; readonly batch: number; readonly bytes: Uint8Array }
  | { readonly kind: 'format'; readonly batch: number; readonly start: number; readonly header: boolean };

export type PrepareReply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'split'; readonly batch: number; readonly facts: BatchFacts }
  | { readonly kind: 'format'; readonly batch: number; readonly bytes: Uint8Array }
  | { readonly kind: 'error'; readonly error: SerializedError };
