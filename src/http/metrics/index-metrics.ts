import type { Retriever } from '../../retrieval/retriever.ts';
import type { RetrieverStatistics } from '../../retrieval/retriever-statistics.ts';
import type { RetrieverHolder } from '../indexes/retriever-holder.ts';
import type { MetricLine, MetricSet } from './prometheus.ts';

/** Upper bounds of the buckets of `SearchLoad.batchSizes`; a batch has at most 1,024 queries. */
const BATCH_SIZES = [1, 3, 7, 15, 31, 63, 127, 255, 511, 1_023];

/** Values by stage; a metric without stages has the empty key. */
type ByStage = (statistics: RetrieverStatistics) => Readonly<Record<string, number>>;

/** Adds the facts and statistics of all indexes, labelled with the index's name. */
export function addIndexMetrics(metrics: MetricSet, holder: () => RetrieverHolder | undefined): void {
  addFacts(metrics, holder);
  const addLines = (
    name: string,
    help: string,
    type: 'counter' | 'gauge' | 'histogram',
    lines: (statistics: RetrieverStatistics) => readonly MetricLine[],
  ): void =>
    metrics.collected(name, help, type, () =>
      (holder()?.slots ?? []).flatMap(({ name: index, statistics }) =>
        statistics === undefined
          ? []
          : lines(statistics).map(({ labels, ...line }) => ({ ...line, labels: { index, ...labels } })),
      ),
    );
  const add = (name: string, help: string, type: 'counter' | 'gauge', values: ByStage): void =>
    addLines(name, help, type, (statistics) =>
      Object.entries(values(statistics)).map(([stage, value]) => ({ value, labels: stage === '' ? {} : { stage } })),
    );
  add(
    'trawl_queue_queries',
    'Queued queries, by the stage that they wait for; for rerank, pairs of query and passage.',
    'gauge',
    ({ encoder, search, rerank }) => ({
      embed: encoder.waitingTexts,
      search: search.waitingQueries,
      rerank: rerank.waitingPairs,
    }),
  );
  add(
    'trawl_queue_expected_wait_seconds',
    'Expected time until the queued queries are done, by stage.',
    'gauge',
    ({ encoder, search, rerank }) => ({
      embed: encoder.expectedWaitMs / 1000,
      search: search.expectedWaitMs / 1000,
      rerank: rerank.expectedWaitMs / 1000,
    }),
  );
  add('trawl_batches_total', 'Batches, by stage.', 'counter', ({ encoder, search }) => ({
    embed: encoder.chunks,
    search: search.batches,
  }));
  add('trawl_batch_queries_total', 'Queries in batches, by stage.', 'counter', ({ encoder, search }) => ({
    embed: encoder.texts,
    search: search.queries,
  }));
  const batches = 'trawl_search_batch_queries';
  addLines(batches, 'Queries per batch of the engine.', 'histogram', ({ search }) => {
    let count = 0;
    return [
      ...BATCH_SIZES.map((le, i) => {
        count += search.batchSizes[i] ?? 0;
        return { metricName: `${batches}_bucket`, value: count, labels: { le } };
      }),
      { metricName: `${batches}_bucket`, value: search.batches, labels: { le: '+Inf' } },
      { metricName: `${batches}_sum`, value: search.queries, labels: {} },
      { metricName: `${batches}_count`, value: search.batches, labels: {} },
    ];
  });
  add(
    'trawl_abandoned_queries_total',
    'Queries dropped before their stage because the client disconnected, by stage.',
    'counter',
    ({ encoder, search }) => ({
      embed: encoder.droppedTexts,
      search: search.droppedQueries,
    }),
  );
  add('trawl_full_scans_total', 'Queries for which every row was scored exactly.', 'counter', ({ search }) => ({
    '': search.fullScans,
  }));
  add(
    'trawl_rescored_rows_total',
    'Rows scored exactly in addition to the scans of the codes.',
    'counter',
    ({ search }) => ({
      '': search.rescoredRows,
    }),
  );
  add('trawl_bm25_queries_total', 'Queries ranked with BM25.', 'counter', ({ lexical }) => ({ '': lexical.queries }));
  add('trawl_bm25_postings_total', 'Postings of the terms in BM25 queries.', 'counter', ({ lexical }) => ({
    '': lexical.postings,
  }));
  add('trawl_bm25_postings_read_total', 'Postings decoded for BM25 queries.', 'counter', ({ lexical }) => ({
    '': lexical.postingsRead,
  }));
  add(
    'trawl_reranked_lists_total',
    'Lists of hits or of texts that the reranker ordered.',
    'counter',
    ({ rerank }) => ({
      '': rerank.lists - rerank.failedLists,
    }),
  );
  add('trawl_rerank_failures_total', 'Lists on which the reranker failed.', 'counter', ({ rerank }) => ({
    '': rerank.failedLists,
  }));
  add('trawl_rerank_pairs_total', 'Pairs of query and passage that the reranker scored.', 'counter', ({ rerank }) => ({
    '': rerank.pairs,
  }));
  add(
    'trawl_rerank_truncated_pairs_total',
    "Scored pairs that were truncated to the reranker's token limit.",
    'counter',
    ({ rerank }) => ({ '': rerank.truncatedPairs }),
  );
  add('trawl_waiting_calls', 'Calls in flight.', 'gauge', ({ waiting }) => ({ '': waiting.calls }));
  add(
    'trawl_waiting_bytes',
    'Bytes of the queries and expected answers of the calls in flight.',
    'gauge',
    ({ waiting }) => ({
      '': waiting.bytes,
    }),
  );
  add(
    'trawl_waiting_bytes_max',
    'Limit of trawl_waiting_bytes, at which calls are refused.',
    'gauge',
    ({ waiting }) => ({
      '': waiting.maxBytes,
    }),
  );
  add('trawl_cached_queries_total', 'Queries answered from the cache.', 'counter', ({ sharing }) => ({
    '': sharing.cached,
  }));
  add('trawl_coalesced_queries_total', 'Queries answered by an equal query in flight.', 'counter', ({ sharing }) => ({
    '': sharing.coalesced,
  }));
  add('trawl_joined_queries_total', 'Old name of trawl_coalesced_queries_total.', 'counter', ({ sharing }) => ({
    '': sharing.coalesced,
  }));
  add('trawl_computed_queries_total', 'Queries computed.', 'counter', ({ sharing }) => ({
    '': sharing.computed,
  }));
  add('trawl_cache_entries', 'Answers in the cache.', 'gauge', ({ sharing }) => ({ '': sharing.cacheEntries }));
  add('trawl_cache_bytes', 'Bytes of answers in the cache.', 'gauge', ({ sharing }) => ({
    '': sharing.cacheBytes,
  }));
}

function addFacts(metrics: MetricSet, holder: () => RetrieverHolder | undefined): void {
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
