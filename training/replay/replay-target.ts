import { TrawlError } from '../../src/base/errors.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { isOfQuery } from '../../src/search/calls/query-errors.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { KeyedCall } from './stored-answer.ts';

export interface KnownPassage {
  readonly title: string | undefined;
  /** Title and text. Empty if texts were not asked for. */
  readonly contents: string;
}

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

interface TargetAnswer {
  /** Empty if every query was refused. */
  readonly index: string;
  readonly outcomes: readonly TargetOutcome[];
}

/** What recorded queries are asked again. */
export interface ReplayTarget {
  /**
   * Rejects if the target cannot be searched at all, or fails for a reason outside of the query; a search that it refuses has the code of
   * the error as each outcome.
   */
  search(
    queries: readonly EncoderInput[],
    call: KeyedCall,
    options: { readonly texts: boolean; readonly signal?: AbortSignal },
  ): Promise<TargetAnswer>;
  /** The passages with these ids; unknown ids are left out. Null if the target cannot look up ids. */
  passages(ids: readonly string[], signal: AbortSignal | undefined): Promise<ReadonlyMap<string, KnownPassage> | null>;
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

export function indexTarget(retriever: Retriever): ReplayTarget {
  return {
    async search(queries, call, { signal }) {
      const { index, generation } = retriever.info;
      try {
        const { outcomes } = await retriever.retrieve({ ...call, queries, signal });
        return { index, outcomes: outcomes.map((outcome) => targetOutcome(outcome, generation)) };
      } catch (error) {
        if (!(error instanceof TrawlError) || !REFUSED.has(error.code)) throw error;
        return { index, outcomes: queries.map(() => ({ ok: false, code: error.code, ofQuery: false })) };
      }
    },
    async passages(ids, signal) {
      try {
        const { found } = await retriever.find({ by: 'id', keys: ids, limit: 1, signal });
        const known = new Map<string, KnownPassage>();
        for (const [i, [passage]] of found.entries()) {
          if (passage === undefined) continue;
          const { title, contents } = documentFields(passage.document);
          known.set(ids[i]!, { title, contents });
        }
        return known;
      } catch (error) {
        if (error instanceof TrawlError && REFUSED.has(error.code)) return null;
        throw error;
      }
    },
  };
}

function targetOutcome(outcome: QueryOutcome, generation: string): TargetOutcome {
  if (!outcome.ok) {
    // The same query may succeed next time, so its list would not be what the index returns.
    if (!isOfQuery(outcome.error)) throw outcome.error;
    return { ok: false, code: outcome.error.code, ofQuery: true };
  }
  const hits = outcome.hits.map(({ row, score, document, source }): TargetHit => {
    const { id = null, title, contents } = documentFields(document);
    return { row: source?.row ?? row, id, score, title, contents, index: source?.index };
  });
  return { ok: true, generation, hits };
}
