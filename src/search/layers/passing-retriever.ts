import type { TrawlError } from '../../base/errors.ts';
import type { RowBitmap } from '../../engine/row-bitmap.ts';
import type { CutCall, CutResult } from '../calls/cut-call.ts';
import type { EmbedCall, EmbedResult } from '../calls/embed-call.ts';
import type { ExplainCall, ExplainResult } from '../calls/explain-call.ts';
import type { FindCall, FindResult } from '../calls/find-call.ts';
import type { NearestCall, NearestResult } from '../calls/nearest-call.ts';
import type { RerankCall, RerankResult } from '../calls/rerank-call.ts';
import type { RetrieveCall, RetrieveResult } from '../calls/retrieve-call.ts';
import type { ScoreCall, ScoreResult } from '../calls/score-call.ts';
import type { SelectCall } from '../calls/select-call.ts';
import type { TreeCall, TreeResult } from '../calls/tree-call.ts';
import type { Retriever } from '../retriever.ts';
import type { RetrieverInfo } from '../retriever-info.ts';
import type { RetrieverStatistics } from '../retriever-statistics.ts';

/**
 * Passes every call on to another retriever. A subclass overrides the calls that it changes. A retriever that limits its calls
 * (`narrowedRetriever`, `BoundedRetriever`) is not one: it must not pass on a new kind of call unless somebody decided so.
 */
export class PassingRetriever implements Retriever {
  readonly info: RetrieverInfo;
  protected readonly inner: Retriever;

  constructor(inner: Retriever) {
    this.info = inner.info;
    this.inner = inner;
  }

  retrieve(call: RetrieveCall): Promise<RetrieveResult> {
    return this.inner.retrieve(call);
  }

  hasAnswers(call: RetrieveCall): boolean {
    return this.inner.hasAnswers(call);
  }

  explain(call: ExplainCall): Promise<ExplainResult> {
    return this.inner.explain(call);
  }

  score(call: ScoreCall): Promise<ScoreResult> {
    return this.inner.score(call);
  }

  searchTree(call: TreeCall): Promise<TreeResult> {
    return this.inner.searchTree(call);
  }

  select(call: SelectCall): Promise<RowBitmap> {
    return this.inner.select(call);
  }

  nearest(call: NearestCall): Promise<NearestResult> {
    return this.inner.nearest(call);
  }

  embed(call: EmbedCall): Promise<EmbedResult> {
    return this.inner.embed(call);
  }

  rerank(call: RerankCall): Promise<RerankResult> {
    return this.inner.rerank(call);
  }

  find(call: FindCall): Promise<FindResult> {
    return this.inner.find(call);
  }

  cut(call: CutCall): Promise<CutResult> {
    return this.inner.cut(call);
  }

  statistics(): RetrieverStatistics {
    return this.inner.statistics();
  }

  get failure(): TrawlError | undefined {
    return this.inner.failure;
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
