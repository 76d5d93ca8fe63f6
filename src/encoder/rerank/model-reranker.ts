import { type CrossEncoder, openCrossEncoder } from '../cross-encoder.ts';
import type { RunOptions } from '../open-encoder.ts';
import type { EncodeOutcome } from '../text-encoder.ts';
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

  static async open(nameOrFolder: string, options: RunOptions = {}): Promise<ModelReranker> {
    return new ModelReranker(await openCrossEncoder(nameOrFolder, options));
  }

  get expectedWaitMs(): number {
    return this.#model.load.expectedWaitMs;
  }

  async score(lists: readonly RerankList[], { raw = false, signal }: RerankOptions = {}): Promise<RerankScores> {
    const pairs = lists.flatMap(({ query, passages }) => passages.map((passage) => ({ query, passage })));
    const scored = await this.#model.scorePairs(pairs, { activation: raw ? 'none' : 'model', signal });
    let start = 0;
    const outcomes = lists.map(({ passages }) => {
      const end = start + passages.length;
      const outcome = listOutcome(scored.scores.slice(start, end), scored.outcomes.slice(start, end));
      start = end;
      return outcome;
    });
    return { outcomes, waitedMs: scored.waitedMs };
  }

  close(): Promise<void> {
    return this.#model.close();
  }
}

function listOutcome(scores: Float32Array, pairs: readonly EncodeOutcome[]): RerankOutcome {
  let tokens = 0;
  let truncated = 0;
  for (const pair of pairs) {
    if (!pair.ok) return pair;
    tokens += pair.tokens ?? 0;
    if (pair.truncated) truncated++;
  }
  return { ok: true, scores, tokens, truncated };
}
