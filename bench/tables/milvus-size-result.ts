import type { MachineFacts } from '../environment.ts';

/** Of single queries, in milliseconds. */
export interface MilvusTimes {
  readonly medianMs: number;
  readonly p95Ms: number;
}

export interface MilvusSizeRow {
  readonly rows: number;
  /** Until all rows are stored and in Milvus's index. */
  readonly storedS: number;
  /** Resident memory of Milvus before its rows are loaded, and after the searches. */
  readonly beforeLoadingBytes: number;
  readonly afterSearchesBytes: number;
  /** Searches for 42 candidates. */
  readonly candidates: MilvusTimes;
  /** Searches for ten hits, proved. */
  readonly proved: MilvusTimes;
  /** Load average of the last minute. */
  readonly load: number;
}

/** What scripts/milvus-size.mjs writes: memory and times of a standalone Milvus by the number of rows. */
export interface MilvusSizeResult {
  readonly environment: MachineFacts;
  readonly dimension: number;
  readonly sizes: readonly MilvusSizeRow[];
}
