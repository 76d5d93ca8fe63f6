import type { Lookup } from '../../index/passages/schema.ts';
import type { StageTimings } from '../timings.ts';
import type { HitSource } from './query-outcome.ts';
import type { RowScope } from './row-scope.ts';

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
