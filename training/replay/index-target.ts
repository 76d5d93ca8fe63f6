import { TrawlError } from '../../src/base/errors.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { isOfQuery } from '../../src/search/calls/query-errors.ts';
import type { Hit, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveResult } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { KeyedCall } from './answer-key.ts';
import {
  type KnownPassage,
  REFUSED,
  type ReplayTarget,
  type TargetAnswer,
  type TargetHit,
  type TargetOutcome,
  type TargetSearchOptions,
} from './replay-target.ts';

/** An open index that recorded queries are asked again. */
export class IndexTarget implements ReplayTarget {
  readonly #retriever: Retriever;

  constructor(retriever: Retriever) {
    this.#retriever = retriever;
  }

  async search(
    queries: readonly EncoderInput[],
    call: KeyedCall,
    { signal }: TargetSearchOptions,
  ): Promise<TargetAnswer> {
    const { index, generation } = this.#retriever.info;
    const ofSignal = signal === undefined ? {} : { signal };
    let result: RetrieveResult;
    try {
      result = await this.#retriever.retrieve({ ...call, queries, ...ofSignal });
    } catch (error) {
      if (!(error instanceof TrawlError) || !REFUSED.has(error.code)) throw error;
      return { index, outcomes: queries.map(() => ({ ok: false, code: error.code, ofQuery: false })) };
    }
    return { index, outcomes: result.outcomes.map((outcome) => outcomeOf(outcome, generation)) };
  }

  async passages(ids: readonly string[], signal: AbortSignal | undefined): Promise<Map<string, KnownPassage> | null> {
    try {
      const { found } = await this.#retriever.find({
        by: 'id',
        keys: ids,
        limit: 1,
        signal,
      });
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
  }
}

function outcomeOf(outcome: QueryOutcome, generation: string): TargetOutcome {
  if (!outcome.ok) {
    // The same query may succeed next time, so its list would not be what the index returns.
    if (!isOfQuery(outcome.error)) throw outcome.error;
    return { ok: false, code: outcome.error.code, ofQuery: true };
  }
  return { ok: true, generation, hits: outcome.hits.map(hitOf) };
}

function hitOf({ row, score, document, source }: Hit): TargetHit {
  const { id = null, title, contents } = documentFields(document);
  return { row: source?.row ?? row, id, score, title, contents, index: source?.index };
}
