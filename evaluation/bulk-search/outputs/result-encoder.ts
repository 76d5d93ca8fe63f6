import type { TrawlError } from '../../../src/base/errors.ts';
import type { Hit } from '../../../src/search/calls/query-outcome.ts';

/** The hits of a query, or its error. */
export interface FoundQuery {
  readonly id: string;
  readonly round: number | undefined;
  /** Best first; empty for a query that failed. */
  readonly hits: readonly Hit[];
  /** The ids of the hits; empty if the encoder needs none. */
  readonly ids: readonly string[];
  readonly error?: TrawlError;
}

export interface OutputShape {
  readonly queries: number;
  readonly k: number;
  readonly hasRounds: boolean;
  /** Whether the hits come from a group of indexes, whose names are written. */
  readonly isGroup: boolean;
  /** Whether there is a second file, for the scores. */
  readonly hasScoreFile: boolean;
  /** Name of the run in a TREC run. */
  readonly tag: string;
}

/** Bytes to append to each file of the output. */
export type FileBytes = readonly Uint8Array[];

/**
 * Turns hits into the bytes of the output. The files consist of the bytes of `begin`, of each `add` in the order of the queries, and
 * of `end`. They depend only on the hits and on which of them were added together.
 */
export interface ResultEncoder {
  /** Whether `FoundQuery.ids` is used. */
  readonly needsIds: boolean;
  begin(): FileBytes;
  add(found: readonly FoundQuery[]): FileBytes;
  end(): FileBytes;
  /** Hits that were added and are not in the returned bytes. */
  readonly pendingHits: number;
  /** What a new encoder needs to continue: a JSON value. */
  state(): unknown;
}

/** The row that is written: in a group, the row in the hit's index. */
export function rowOfHit({ row, source }: Hit): number {
  return source?.row ?? row;
}
