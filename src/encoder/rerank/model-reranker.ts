import { type CrossEncoder, openCrossEncoder, type ScoreResult } from '../cross-encoder.ts';
import type { RunOptions } from '../open-encoder.ts';
import type { Reranker, RerankerInfo, RerankList, RerankOptions, RerankOutcome, RerankScores } from './reranker.ts';

/**
 * A cross-encoder of this process. The pairs of all calls wait in one queue, as the texts of an encoder do, and the bits of a score
 * do not depend on the other pairs. A pair over the token limit is truncated as sentence-transformers does: from the longer text
 * until both have the same length, so that a query of up to half of the limit stays whole.
 */
export class ModelReranker implements Reranker {
  readonly info: RerankerInfo;
  readonly #model: CrossEncoder;

  constructor(model: CrossEncoder) {
    this.#model = model;
    const { name, maxTokens, sha256 } = model.identity;
    this.info = { name, maxTokens: maxTokens.passage, sha256 };
  }

  /** Errors as of `openCrossEncoder`. */
  static async open(nameOrFolder: string, options: RunOptions = {}): Promise<ModelReranker> {
    return new ModelReranker(await openCrossEncoder(nameOrFolder, options));
  }

  get expectedWaitMs(): number {
    return this.#model.load.expectedWaitMs;
  }

  async score(lists: readonly RerankList[], { raw = false, signal }: RerankOptions = {}): Promise<RerankScores> {
    const pairs = lists.flatMap(({ query, passages }) => passages.map((passage) => ({ query, passage })));
    const result = await this.#model.scorePairs(pairs, {
      activation: raw ? 'none' : 'model',
      signal,
    });
    let start = 0;
    const outcomes = lists.map(({ passages }) => {
      const outcome = outcomeOf(result, start, passages.length);
      start += passages.length;
      return outcome;
    });
    return { outcomes, waitedMs: result.waitedMs };
  }

  close(): Promise<void> {
    return this.#model.close();
  }
}

/** The outcome of the list with `count` pairs from `start`. */
function outcomeOf({ scores, outcomes }: ScoreResult, start: number, count: number): RerankOutcome {
  let tokens = 0;
  let truncated = 0;
  for (const outcome of outcomes.slice(start, start + count)) {
    if (!outcome.ok) return outcome;
    tokens += outcome.tokens ?? 0;
    if (outcome.truncated) truncated++;
  }
  return { ok: true, scores: scores.slice(start, start + count), tokens, truncated };
}
