import type { RetrieverInfo } from '../../search/retriever-info.ts';
import type { RetrieverStatistics } from '../../search/retriever-statistics.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';

interface MetricLine {
  /** Only for a histogram's `…_bucket`, `…_sum` and `…_count`. */
  readonly metricName?: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string | number>>;
}

/** Adds a metric whose samples are computed at each scrape. */
export type AddMetric = (
  name: string,
  help: string,
  type: 'counter' | 'gauge' | 'histogram',
  lines: () => readonly MetricLine[] | Promise<readonly MetricLine[]>,
) => void;

/** Upper bounds of the buckets of `SearchLoad.batchSizes`; a batch has at most 1,024 queries. */
const BATCH_SIZES = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023];

/** The value of a metric, or one for each stage. */
type Values = (statistics: RetrieverStatistics) => number | Readonly<Record<string, number>>;

/** The metrics of an index's statistics: help and values by name. As is usual, the names of counters end with `_total`. */
const STATISTIC_METRICS: Readonly<Record<string, readonly [help: string, values: Values]>> = {
  trawl_queue_queries: [
    'Queued queries, by the stage that they wait for; for rerank, pairs of query and passage.',
    ({ encoder, search, rerank }) => ({
      embed: encoder.waitingTexts,
      search: search.waitingQueries,
      rerank: rerank.waitingPairs,
    }),
  ],
  trawl_queue_expected_wait_seconds: [
    'Expected time until the queued queries are done, by stage.',
    ({ encoder, search, rerank }) => ({
      embed: encoder.expectedWaitMs / 1000,
      search: search.expectedWaitMs / 1000,
      rerank: rerank.expectedWaitMs / 1000,
    }),
  ],
  trawl_batches_total: [
    'Batches, by stage.',
    ({ encoder, search }) => ({ embed: encoder.chunks, search: search.batches }),
  ],
  trawl_batch_queries_total: [
    'Queries in batches, by stage.',
    ({ encoder, search }) => ({ embed: encoder.texts, search: search.queries }),
  ],
  trawl_abandoned_queries_total: [
    'Queries dropped before their stage because the client disconnected, by stage.',
    ({ encoder, search }) => ({ embed: encoder.droppedTexts, search: search.droppedQueries }),
  ],
  trawl_full_scans_total: ['Queries for which every row was scored exactly.', ({ search }) => search.fullScans],
  trawl_rescored_rows_total: [
    'Rows scored exactly in addition to the scans of the codes.',
    ({ search }) => search.rescoredRows,
  ],
  trawl_bm25_queries_total: ['Queries ranked with BM25.', ({ lexical }) => lexical.queries],
  trawl_bm25_postings_total: ['Postings of the terms in BM25 queries.', ({ lexical }) => lexical.postings],
  trawl_bm25_postings_read_total: ['Postings decoded for BM25 queries.', ({ lexical }) => lexical.postingsRead],
  trawl_reranked_lists_total: [
    'Lists of hits or of texts that the reranker ordered.',
    ({ rerank }) => rerank.lists - rerank.failedLists,
  ],
  trawl_rerank_failures_total: ['Lists on which the reranker failed.', ({ rerank }) => rerank.failedLists],
  trawl_rerank_pairs_total: ['Pairs of query and passage that the reranker scored.', ({ rerank }) => rerank.pairs],
  trawl_rerank_truncated_pairs_total: [
    "Scored pairs that were truncated to the reranker's token limit.",
    ({ rerank }) => rerank.truncatedPairs,
  ],
  trawl_waiting_calls: ['Calls in flight.', ({ waiting }) => waiting.calls],
  trawl_waiting_bytes: [
    'Bytes of the queries and expected answers of the calls in flight.',
    ({ waiting }) => waiting.bytes,
  ],
  trawl_waiting_bytes_max: [
    'Limit of trawl_waiting_bytes, at which calls are refused.',
    ({ waiting }) => waiting.maxBytes,
  ],
  trawl_cached_queries_total: ['Queries answered from the cache.', ({ sharing }) => sharing.cached],
  trawl_coalesced_queries_total: ['Queries answered by an equal query in flight.', ({ sharing }) => sharing.coalesced],
  trawl_computed_queries_total: ['Queries computed.', ({ sharing }) => sharing.computed],
  trawl_cache_entries: ['Answers in the cache.', ({ sharing }) => sharing.cacheEntries],
  trawl_cache_bytes: ['Bytes of answers in the cache.', ({ sharing }) => sharing.cacheBytes],
};

type IndexLine = Pick<MetricLine, 'value'> & Partial<Pick<MetricLine, 'labels'>>;

/** The gauges of an open index: help and line by name. The line is undefined if the index lacks the fact. */
const INDEX_GAUGES: Readonly<
  Record<string, readonly [help: string, line: (info: RetrieverInfo, draining: number) => IndexLine | undefined]>
> = {
  trawl_index_info: [
    'Always 1; the labels give generation, model and metric of an index.',
    ({ generation, model, metric }) => ({
      value: 1,
      labels: { generation, model: model?.name ?? '', metric: metric ?? '' },
    }),
  ],
  trawl_index_rows: ['Rows of an index, deleted ones included.', ({ rows }) => ({ value: rows })],
  trawl_index_resident_bytes: [
    "Resident bytes: the part of an index's files that searches need in memory.",
    ({ memory }) => ({ value: memory.residentBytes }),
  ],
  trawl_index_mapped_bytes: [
    "Bytes of an index's files that are mapped and read in small parts.",
    ({ memory }) => ({ value: memory.mappedBytes + memory.touchedBytes + memory.lexicalBytes }),
  ],
  trawl_index_gpu_bytes: [
    'Bytes of the memory of the GPU that searches an index.',
    ({ gpu }) => gpu && { value: gpu.bytes, labels: { gpu: gpu.name } },
  ],
  trawl_index_gpu_failed: [
    'Whether the GPU that was to search an index failed, so that the CPU searches it.',
    ({ gpu }) => gpu && { value: Number(gpu.failed), labels: { gpu: gpu.name } },
  ],
  trawl_index_draining: [
    'Replaced generations of an index that still have requests.',
    (_info, draining) => ({ value: draining }),
  ],
};

const BATCH_QUERIES = 'trawl_search_batch_queries';

/** Adds the facts and statistics of all indexes, labelled with the index's name. */
export function addIndexMetrics(add: AddMetric, holder: () => IndexRegistry | undefined): void {
  for (const [name, [help, line]] of Object.entries(INDEX_GAUGES)) {
    add(name, help, 'gauge', () =>
      (holder()?.slots ?? []).flatMap(({ name: index, retriever, draining }) => {
        const found = retriever && line(retriever.info, draining);
        return found === undefined ? [] : [{ value: found.value, labels: { index, ...found.labels } }];
      }),
    );
  }
  const linesOfAll = (lines: (statistics: RetrieverStatistics) => readonly MetricLine[]): readonly MetricLine[] =>
    (holder()?.slots ?? []).flatMap(({ name: index, statistics }) =>
      statistics === undefined
        ? []
        : lines(statistics).map(({ labels, ...line }) => ({ ...line, labels: { index, ...labels } })),
    );
  for (const [name, [help, values]] of Object.entries(STATISTIC_METRICS)) {
    const type = name.endsWith('_total') ? 'counter' : 'gauge';
    add(name, help, type, () => linesOfAll((statistics) => statisticLines(values(statistics))));
  }
  add(BATCH_QUERIES, 'Queries per batch of the engine.', 'histogram', () => linesOfAll(batchLines));
}

function statisticLines(values: ReturnType<Values>): readonly MetricLine[] {
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
