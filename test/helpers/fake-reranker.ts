import type { TrawlError } from '../../src/base/errors.ts';
import type {
  Reranker,
  RerankList,
  RerankOptions,
  RerankOutcome,
  RerankScores,
} from '../../src/encoder/rerank/reranker.ts';

export interface FakeRerankerOptions {
  /** The score of a pair. Default: the length of the passage. */
  readonly score?: (query: string, passage: string) => number;
  /** The error of a query; undefined: none. */
  readonly fail?: (query: string) => TrawlError | undefined;
  /** Called before the pairs are scored. It may wait, or throw the call's error. */
  readonly before?: (options: RerankOptions) => Promise<void> | void;
}

/** A reranker without a model. It records its calls. A passage of more than 1,000 characters counts as truncated. */
export class FakeReranker implements Reranker {
  readonly info = { name: 'fake-reranker', maxTokens: 512 };
  readonly expectedWaitMs = 7;
  readonly calls: (readonly RerankList[])[] = [];
  closed = false;
  readonly #options: FakeRerankerOptions;

  constructor(options: FakeRerankerOptions = {}) {
    this.#options = options;
  }

  async score(lists: readonly RerankList[], options: RerankOptions = {}): Promise<RerankScores> {
    this.calls.push(lists);
    await this.#options.before?.(options);
    const { score = (_query, { length }) => length, fail = () => undefined } = this.#options;
    const outcomes = lists.map(({ query, passages }): RerankOutcome => {
      const error = fail(query);
      if (error !== undefined) return { ok: false, error };
      return {
        ok: true,
        scores: Float32Array.from(passages, (passage) => score(query, passage)),
        tokens: passages.length,
        truncated: passages.filter(({ length }) => length > 1_000).length,
      };
    });
    return { outcomes, waitedMs: 0 };
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}
