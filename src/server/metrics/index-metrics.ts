import type { Retriever } from '../../search/retriever.ts';
import type { RetrieverStatistics } from '../../search/retriever-statistics.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import type { MetricLine, MetricSet } from './prometheus.ts';

/** Upper bounds of the buckets of `SearchLoad.batchSizes`; a batch has at most 1,024 queries. */
const BATCH_SIZES = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023];

/** A metric of the statistics of an index. */
interface StatisticMetric {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  /** Its value, or one for each stage. */
  readonly values: (statistics: RetrieverStatistics) => number | Readonly<Record<string, number>>;
}

const STATISTIC_METRICS: readonly StatisticMetric[] = [
  {
    name: 'trawl_queue_queries',
    help: 'Queued queries, by the stage that they wait for; for rerank, pairs of query and passage.',
    type: 'gauge',
    values: ({ encoder, search, rerank }) => ({
      embed: encoder.waitingTexts,
      search: search.waitingQueries,
      rerank: rerank.waitingPairs,
    }),
  },
  {
    name: 'trawl_queue_expected_wait_seconds',
    help: 'Expected time until the queued queries are done, by stage.',
    type: 'gauge',
    values: ({ encoder, search, rerank }) => ({
      embed: encoder.expectedWaitMs / 1000,
      search: search.expectedWaitMs / 1000,
      rerank: rerank.expectedWaitMs / 1000,
    }),
  },
  {
    name: 'trawl_batches_total',
    help: 'Batches, by stage.',
    type: 'counter',
    values: ({ encoder, search }) => ({ embed: encoder.chunks, search: search.batches }),
  },
  {
    name: 'trawl_batch_queries_total',
    help: 'Queries in batches, by stage.',
    type: 'counter',
    values: ({ encoder, search }) => ({ embed: encoder.texts, search: search.queries }),
  },
  {
    name: 'trawl_abandoned_queries_total',
    help: 'Queries dropped before their stage because the client disconnected, by stage.',
    type: 'counter',
    values: ({ encoder, search }) => ({ embed: encoder.droppedTexts, search: search.droppedQueries }),
  },
  {
    name: 'trawl_full_scans_total',
    help: 'Queries for which every row was scored exactly.',
    type: 'counter',
    values: ({ search }) => search.fullScans,
  },
  {
    name: 'trawl_rescored_rows_total',
    help: 'Rows scored exactly in addition to the scans of the codes.',
    type: 'counter',
    values: ({ search }) => search.rescoredRows,
  },
  {
    name: 'trawl_bm25_queries_total',
    help: 'Queries ranked with BM25.',
    type: 'counter',
    values: ({ lexical }) => lexical.queries,
  },
  {
    name: 'trawl_bm25_postings_total',
    help: 'Postings of the terms in BM25 queries.',
    type: 'counter',
    values: ({ lexical }) => lexical.postings,
  },
  {
    name: 'trawl_bm25_postings_read_total',
    help: 'Postings decoded for BM25 queries.',
    type: 'counter',
    values: ({ lexical }) => lexical.postingsRead,
  },
  {
    name: 'trawl_reranked_lists_total',
    help: 'Lists of hits or of texts that the reranker ordered.',
    type: 'counter',
    values: ({ rerank }) => rerank.lists - rerank.failedLists,
  },
  {
    name: 'trawl_rerank_failures_total',
    help: 'Lists on which the reranker failed.',
    type: 'counter',
    values: ({ rerank }) => rerank.failedLists,
  },
  {
    name: 'trawl_rerank_pairs_total',
    help: 'Pairs of query and passage that the reranker scored.',
    type: 'counter',
    values: ({ rerank }) => rerank.pairs,
  },
  {
    name: 'trawl_rerank_truncated_pairs_total',
    help: "Scored pairs that were truncated to the reranker's token limit.",
    type: 'counter',
    values: ({ rerank }) => rerank.truncatedPairs,
  },
  {
    name: 'trawl_waiting_calls',
    help: 'Calls in flight.',
    type: 'gauge',
    values: ({ waiting }) => waiting.calls,
  },
  {
    name: 'trawl_waiting_bytes',
    help: 'Bytes of the queries and expected answers of the calls in flight.',
    type: 'gauge',
    values: ({ waiting }) => waiting.bytes,
  },
  {
    name: 'trawl_waiting_bytes_max',
    help: 'Limit of trawl_waiting_bytes, at which calls are refused.',
    type: 'gauge',
    values: ({ waiting }) => waiting.maxBytes,
  },
  {
    name: 'trawl_cached_queries_total',
    help: 'Queries answered from the cache.',
    type: 'counter',
    values: ({ sharing }) => sharing.cached,
  },
  {
    name: 'trawl_coalesced_queries_total',
    help: 'Queries answered by an equal query in flight.',
    type: 'counter',
    values: ({ sharing }) => sharing.coalesced,
  },
  {
    name: 'trawl_joined_queries_total',
    help: 'Old name of trawl_coalesced_queries_total.',
    type: 'counter',
    values: ({ sharing }) => sharing.coalesced,
  },
  {
    name: 'trawl_computed_queries_total',
    help: 'Queries computed.',
    type: 'counter',
    values: ({ sharing }) => sharing.computed,
  },
  {
    name: 'trawl_cache_entries',
    help: 'Answers in the cache.',
    type: 'gauge',
    values: ({ sharing }) => sharing.cacheEntries,
  },
  {
    name: 'trawl_cache_bytes',
    help: 'Bytes of answers in the cache.',
    type: 'gauge',
    values: ({ sharing }) => sharing.cacheBytes,
  },
];

const BATCH_QUERIES = 'trawl_search_batch_queries';

/** Adds the facts and statistics of all indexes, labelled with the index's name. */
export function addIndexMetrics(metrics: MetricSet, holder: () => IndexRegistry | undefined): void {
  addFacts(metrics, holder);
  const linesOfAll = (lines: (statistics: RetrieverStatistics) => readonly MetricLine[]): readonly MetricLine[] =>
    (holder()?.slots ?? []).flatMap(({ name: index, statistics }) =>
      statistics === undefined
        ? []
        : lines(statistics).map(({ labels, ...line }) => ({ ...line, labels: { index, ...labels } })),
    );
  for (const { name, help, type, values } of STATISTIC_METRICS) {
    metrics.collected(name, help, type, () => linesOfAll((statistics) => linesOf(values(statistics))));
  }
  metrics.collected(BATCH_QUERIES, 'Queries per batch of the engine.', 'histogram', () => linesOfAll(batchLines));
}

function linesOf(values: ReturnType<StatisticMetric['values']>): readonly MetricLine[] {
  if (typeof values === 'number') return [{ value: values, labels: {} }];
  return Object.entries(values).map(([stage, value]) => ({ value, labels: { stage } }));
}

function batchLines({ search }: RetrieverStatistics): readonly MetricLine[] {
  let count = 0;
  return [
    ...BATCH_SIZES.map((le, i) => {
      count += search.batchSizes[i] ?? 0;
      return { metricName: `${BATCH_QUERIES}_bucket`, value: count, labels: { le } };
    }),
    { metricName: `${BATCH_QUERIES}_bucket`, value: search.batches, labels: { le: '+Inf' } },
    { metricName: `${BATCH_QUERIES}_sum`, value: search.queries, labels: {} },
    { metricName: `${BATCH_QUERIES}_count`, value: search.batches, labels: {} },
  ];
}

function addFacts(metrics: MetricSet, holder: () => IndexRegistry | undefined): void {
  const addGauge = (
    name: string,
    help: string,
    line: (retriever: Retriever, draining: number) => { value: number; labels?: Record<string, string> } | undefined,
  ): void =>
    metrics.collected(name, help, 'gauge', () =>
      (holder()?.slots ?? []).flatMap(({ name: index, retriever, draining }) => {
        if (retriever === undefined) return [];
        const found = line(retriever, draining);
        return found === undefined ? [] : [{ value: found.value, labels: { index, ...found.labels } }];
      }),
    );
  addGauge('trawl_index_info', 'Always 1; the labels give generation, model and metric of an index.', ({ info }) => ({
    value: 1,
    labels: { generation: info.generation, model: info.model?.name ?? '', metric: info.metric ?? '' },
  }));
  addGauge('trawl_index_rows', 'Rows of an index, deleted ones included.', ({ info }) => ({ value: info.rows }));
  addGauge(
    'trawl_index_resident_bytes',
    "Resident bytes: the part of an index's files that searches need in memory.",
    ({ info }) => ({
      value: info.memory.residentBytes,
    }),
  );
  addGauge(
    'trawl_index_mapped_bytes',
    "Bytes of an index's files that are mapped and read in small parts.",
    ({ info }) => ({ value: info.memory.mappedBytes + info.memory.touchedBytes + info.memory.lexicalBytes }),
  );
  addGauge(
    'trawl_index_gpu_bytes',
    'Bytes of the memory of the GPU that searches an index.',
    ({ info: { gpu } }) => gpu && { value: gpu.bytes, labels: { gpu: gpu.name } },
  );
  addGauge(
    'trawl_index_gpu_failed',
    'Whether the GPU that was to search an index failed, so that the CPU searches it.',
    ({ info: { gpu } }) => gpu && { value: Number(gpu.failed), labels: { gpu: gpu.name } },
  );
  addGauge(
    'trawl_index_draining',
    'Replaced generations of an index that still have requests.',
    (_retriever, draining) => ({ value: draining }),
  );
}
