import type { RecordedSearch } from '../../retrieval/recorded-search.ts';
import type { RetrieverInfo } from '../../retrieval/retriever-info.ts';
import type { ServerMetrics } from './server-metrics.ts';

/** Records queries and their hits. `record` must neither throw nor block. */
export interface QueryRecord {
  record(request: RecordedRequest, search: RecordedSearch): void;
}

export interface RecordedRequest {
  readonly requestId: string;
  readonly dialect: string;
  readonly index: string;
  readonly generation: string;
  /** The views that limited the search, with commas in between. */
  readonly view?: string;
}

interface Observers {
  readonly metrics: Pick<ServerMetrics, 'searched'>;
  readonly config: { readonly record: QueryRecord | null };
}

/** Counts and records a request's search once, even if it took several calls of the retriever. */
export function recordSearch(
  search: RecordedSearch,
  request: Pick<RecordedRequest, 'requestId' | 'dialect'>,
  { index, generation, within }: RetrieverInfo,
  { metrics, config: { record } }: Observers,
): void {
  metrics.searched(search.outcomes);
  record?.record({ ...request, index, generation, ...(within === undefined ? {} : { view: within.join() }) }, search);
}
