import { TrawlError } from '../../base/errors.ts';
import { TimeSlice } from '../../base/time-slice.ts';
import { checkPairBudget } from '../../encoder/rerank/pair-budget.ts';
import {
  type Reranker,
  type RerankList,
  type RerankOptions,
  type RerankScores,
  rankByScore,
} from '../../encoder/rerank/reranker.ts';
import { applyTemplate, composeText } from '../../encoder/text-encoder.ts';
import { documentFields } from '../../index/passages/document-fields.ts';
import type { QueryAnswer, QueryOutcome } from '../calls/query-outcome.ts';
import { inputOf, type RerankSettings, type RetrieveCall, type RetrieveResult } from '../calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import type { RerankCall, RerankResult, Search } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import { NO_STATISTICS, type RerankLoad } from '../retriever-statistics.ts';
import { addTimings, Stopwatch } from '../timings.ts';

/**
 * Reranks the hits of a search: the first `depth` hits are scored by a reranker, which reads query and passage together, and the k
 * with the largest scores are returned. The reranker reads the question, if any, a space and the query; and the contents of the
 * passage. Calls that do not ask for reranking pass through.
 */
export class RerankedSearch implements Search {
  readonly #inner: Search;
  readonly #info: RetrieverInfo;
  readonly #reranker: Reranker;
  readonly #maxTokens: number;
  readonly #load: { -readonly [name in keyof RerankLoad]: number } = { ...NO_STATISTICS.rerank };

  /** @param maxTokens see `ServingOptions.maxRerankTokens`. */
  constructor(inner: Search, info: RetrieverInfo, reranker: Reranker, maxTokens: number) {
    this.#inner = inner;
    this.#info = info;
    this.#reranker = reranker;
    this.#maxTokens = maxTokens;
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    const { rerank, ...search } = call;
    if (rerank === undefined) return this.#inner.retrieve(call);
    this.#checkModel(rerank);
    const found = await this.#inner.retrieve({ ...search, k: Math.max(call.k, rerank.depth), documents: true });
    const lists = await this.#lists(call, found.outcomes);
    const watch = new Stopwatch();
    const { outcomes: scored } = await this.#score(lists, { signal: call.signal }, watch);
    let next = 0;
    const outcomes = found.outcomes.map((outcome): QueryOutcome => {
      if (!outcome.ok) return outcome;
      const scores = scored[next++]!;
      if (scores.ok) return this.#reranked(outcome, scores, call.k);
      if (rerank.allowFailure !== true) return scores;
      return { ...outcome, hits: outcome.hits.slice(0, call.k), rerank: scores };
    });
    return { outcomes, timings: addTimings(found.timings, watch.timings) };
  }

  searchTree(call: TreeCall): Promise<TreeResult> {
    return this.#inner.searchTree(call);
  }

  async rerank({ lists, raw, signal }: RerankCall): Promise<RerankResult> {
    const watch = new Stopwatch();
    const { outcomes } = await this.#score(lists, { raw, signal }, watch);
    return { outcomes, timings: watch.timings };
  }

  get load(): RerankLoad {
    return { ...this.#load, expectedWaitMs: this.#reranker.expectedWaitMs };
  }

  #checkModel({ model }: RerankSettings): void {
    const { name } = this.#reranker.info;
    if (model === undefined || model === name) return;
    throw new TrawlError(
      'NOT_SUPPORTED',
      `The reranker ${JSON.stringify(model.slice(0, 100))} is not served. Use ${JSON.stringify(name)}, or leave out its name.`,
      { details: { param: 'model' } },
    );
  }

  async #score(lists: readonly RerankList[], options: RerankOptions, watch: Stopwatch): Promise<RerankScores> {
    checkPairBudget(lists, this.#reranker.info, this.#maxTokens);
    const pairs = lists.reduce((sum, { passages }) => sum + passages.length, 0);
    this.#load.waitingPairs += pairs;
    try {
      const scores = await watch.timeQueued('rerank', () => this.#reranker.score(lists, options));
      this.#countScored(lists, scores);
      return scores;
    } finally {
      this.#load.waitingPairs -= pairs;
    }
  }

  #countScored(lists: readonly RerankList[], { outcomes }: RerankScores): void {
    for (const [i, outcome] of outcomes.entries()) {
      this.#load.lists++;
      if (outcome.ok) {
        this.#load.pairs += lists[i]!.passages.length;
        this.#load.truncatedPairs += outcome.truncated;
      } else this.#load.failedLists++;
    }
  }

  #reranked(
    outcome: QueryAnswer,
    { scores, truncated }: { readonly scores: Float32Array; readonly truncated: number },
    k: number,
  ): QueryAnswer {
    const hits = rankByScore(scores)
      .slice(0, k)
      .map(({ index, score }) => {
        const { unrounded: _, ...hit } = outcome.hits[index]!;
        return { ...hit, score, firstStage: { rank: index + 1, score: hit.score } };
      });
    return {
      ...outcome,
      hits,
      rerank: { ok: true, model: this.#reranker.info.name, passages: scores.length, truncated },
    };
  }

  /** The texts of the queries that did not fail, with the contents of their hits. */
  async #lists({ queries, template, signal }: RetrieveCall, outcomes: readonly QueryOutcome[]): Promise<RerankList[]> {
    const slice = new TimeSlice(signal);
    const lists: RerankList[] = [];
    for (const [i, outcome] of outcomes.entries()) {
      if (!outcome.ok) continue;
      const passages: string[] = [];
      for (const { document } of outcome.hits) {
        passages.push(documentFields(document).contents);
        if (slice.isOver) await slice.yield();
      }
      const query = applyTemplate(inputOf(queries[i]!), template ?? this.#info.model?.queryTemplate);
      lists.push({ query: composeText(query, '', null), passages });
    }
    return lists;
  }
}
