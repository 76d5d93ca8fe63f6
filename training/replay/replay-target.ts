import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import type { KeyedCall } from './answer-key.ts';

/** A passage that the target knows. */
export interface KnownPassage {
  readonly title: string | undefined;
  /** Title and text. Empty if texts were not asked for. */
  readonly contents: string;
}

/** A hit of the target. */
export interface TargetHit extends KnownPassage {
  readonly row: number;
  /** As text; null for a passage without an id. */
  readonly id: string | null;
  /** Larger is nearer. */
  readonly score: number;
  /** The index of the passage, if several are searched as one. */
  readonly index?: string;
}

export type TargetOutcome =
  /** With the generation that answered: a server can reload between two requests. */
  | { readonly ok: true; readonly generation: string; readonly hits: readonly TargetHit[] }
  /** The code of the error, and whether the query itself is its reason (`isOfQuery`): whoever asks it again fails too. */
  | { readonly ok: false; readonly code: string; readonly ofQuery: boolean };

export interface TargetAnswer {
  /** Empty if every query was refused. */
  readonly index: string;
  /** One per query. */
  readonly outcomes: readonly TargetOutcome[];
}

/** What recorded queries are asked again. */
export interface ReplayTarget {
  /**
   * Rejects if the target cannot be searched at all, or fails for a reason outside of the query; a search that it refuses has the code of
   * the error as each outcome.
   */
  search(queries: readonly EncoderInput[], call: KeyedCall, options: TargetSearchOptions): Promise<TargetAnswer>;
  /** The passages with these ids; unknown ids are left out. Null if the target cannot look up ids. */
  passages(ids: readonly string[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, KnownPassage> | null>;
}

export interface TargetSearchOptions {
  /** Whether the hits need their texts. */
  readonly texts: boolean;
  readonly signal?: AbortSignal;
}

/** Codes with which a target refuses one search, and not all. */
export const REFUSED: ReadonlySet<string> = new Set([
  'INVALID_REQUEST',
  'NOT_SUPPORTED',
  'NOT_FOUND',
  'K_TOO_LARGE',
  'RERANK_TOO_LARGE',
  'QUERY_TOO_LONG',
  'EMPTY_QUERY',
  'NOT_RECORDED',
]);
