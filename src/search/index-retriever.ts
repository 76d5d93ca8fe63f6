import { TrawlError } from '../base/errors.ts';
import { RunningCalls } from '../base/running-calls.ts';
import { DEFAULT_MAX_RERANK_TOKENS } from '../encoder/rerank/pair-budget.ts';
import type { Reranker } from '../encoder/rerank/reranker.ts';
import { Admission, type AdmittedCalls, DEFAULT_MAX_WAITING_BYTES } from './admission.ts';
import { isEmbedded, type RetrieveCall, type RetrieveResult } from './calls/retrieve-call.ts';
import type { TreeCall, TreeResult } from './calls/tree-call.ts';
import { QueuedIndex } from './dense/queued-index.ts';
import { IndexSearch, type RetrieverParts, rerankerMissing } from './index-search.ts';
import type { AnswerCache } from './layers/answer-cache.ts';
import { RerankedSearch } from './layers/reranked-search.ts';
import { SharedSearch } from './layers/shared-search.ts';
import type {
  CutCall,
  EmbedCall,
  ExplainCall,
  FindCall,
  NearestCall,
  OpenRetriever,
  RerankCall,
  ScoreCall,
  SelectCall,
} from './retriever.ts';
import type { RetrieverInfo } from './retriever-info.ts';
import { NO_STATISTICS, type RetrieverStatistics } from './retriever-statistics.ts';

export interface ServingOptions {
  /** Cache of finished answers, which several retrievers may share. Default: none. */
  readonly answerCache?: AnswerCache;
  /** Whether equal queries in flight are computed once. Default: true. */
  readonly singleFlight?: boolean;
  /**
   * Limit of the bytes of waiting queries and their expected answers. Above it, calls are refused with OVERLOADED. A low limit
   * refuses bursts that would be answered within seconds; a high limit lets bursts fill the memory. Default: 512 MiB.
   */
  readonly maxWaitingBytes?: number;
  /** Queries of a batch of the vector engine, for throughput; default: as many as keep waits short (`QueuedIndex`). */
  readonly batchQueries?: number;
  /** Reranker, which several retrievers may share and which they do not close. Default: none. */
  readonly reranker?: Reranker;
  /** Limit of the estimated tokens that the reranker reads for one call. Default: 16 Mi (32,768 pairs of 512 tokens). */
  readonly maxRerankTokens?: number;
}

/**
 * An open index. A search passes admission, which may refuse it; `SharedSearch`, which computes equal queries once; `RerankedSearch`, if it
 * is to be reranked; and `IndexSearch`, which runs the stages. The other calls pass admission only.
 */
export class IndexRetriever implements OpenRetriever {
  readonly info: RetrieverInfo;
  readonly #index: IndexSearch;
  readonly #reranked: RerankedSearch | undefined;
  readonly #shared: SharedSearch;
  readonly #admission: Admission;
  readonly #calls = new RunningCalls('The index is being closed. Send the request again.');
  /** The first FILE_CHANGED. All later calls fail: the cache and other modes would hide it. */
  #changed: TrawlError | undefined;

  constructor(info: RetrieverInfo, { dense, ...parts }: RetrieverParts, options: ServingOptions = {}) {
    const { maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES, maxRerankTokens = DEFAULT_MAX_RERANK_TOKENS } = options;
    const { answerCache, singleFlight = true, batchQueries, reranker } = options;
    const queued = dense && {
      encoder: dense.encoder,
      index: new QueuedIndex(dense.index, { expectsMore: () => dense.encoder.load.waitingTexts > 0, batchQueries }),
    };
    this.info = info;
    this.#index = new IndexSearch(info, { dense: queued, ...parts });
    this.#reranked = reranker && new RerankedSearch(this.#index, info, reranker, maxRerankTokens);
    this.#shared = new SharedSearch(this.#reranked ?? this.#index, info, { answerCache, singleFlight });
    // The limit also counts the calls that wait for an equal query: each holds its own queries and its own copy of the answer.
    this.#admission = new Admission(info, maxWaitingBytes, () => this.statistics());
  }

  async retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    // A query with a vector continues an accepted request, and a cached answer is there at once.
    const isExempt = (): boolean => call.queries.every(isEmbedded) || this.#shared.hasAnswers(call);
    const result = await this.#run('retrieve', call, () => this.#shared.retrieve(call), isExempt);
    const [first] = result.outcomes;
    if (first?.ok === true) this.#admission.observe(first.hits);
    return result;
  }

  async searchTree(call: TreeCall): Promise<TreeResult> {
    const result = await this.#run('searchTree', call, () => this.#shared.searchTree(call));
    this.#admission.observe(result.hits);
    return result;
  }

  readonly find = (call: FindCall) => this.#run('find', call, () => this.#index.find(call));
  readonly select = (call: SelectCall) => this.#run('select', call, () => this.#index.select(call));
  readonly score = (call: ScoreCall) => this.#run('score', call, () => this.#index.score(call));
  readonly nearest = (call: NearestCall) => this.#run('nearest', call, () => this.#index.nearest(call));
  readonly embed = (call: EmbedCall) => this.#run('embed', call, () => this.#index.embed(call));
  readonly cut = (call: CutCall) => this.#run('cut', call, () => this.#index.cut(call));

  /** Continues an accepted request, so it is never refused. */
  explain(call: ExplainCall) {
    return this.#whileUnchanged(() => this.#index.explain(call));
  }

  rerank(call: RerankCall) {
    return this.#run('rerank', call, async () => {
      if (this.#reranked === undefined) throw rerankerMissing();
      return this.#reranked.rerank(call);
    });
  }

  #run<Name extends keyof AdmittedCalls, Result>(
    name: Name,
    call: AdmittedCalls[Name],
    work: () => Promise<Result>,
    isExempt?: () => boolean,
  ): Promise<Result> {
    return this.#whileUnchanged(() => this.#admission.run(name, call, work, isExempt));
  }

  async #whileUnchanged<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#changed !== undefined) throw this.#changed;
    try {
      return await this.#calls.run(work);
    } catch (error) {
      if (error instanceof TrawlError && error.code === 'FILE_CHANGED') this.#changed ??= error;
      throw error;
    }
  }

  statistics(): RetrieverStatistics {
    return {
      ...this.#index.load,
      rerank: this.#reranked?.load ?? NO_STATISTICS.rerank,
      waiting: this.#admission.load,
      sharing: this.#shared.load,
    };
  }

  get failure(): TrawlError | undefined {
    return this.#changed ?? this.#index.failure;
  }

  close(): Promise<void> {
    return this.#calls.close(async () => {
      await this.#index.close();
      this.#shared.forget();
    });
  }
}
